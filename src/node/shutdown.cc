#include "node/shutdown.h"

#include <algorithm>
#include <csignal>
#include <vector>

namespace skiff::node {
namespace {

constexpr std::chrono::milliseconds kShutdownLookEvery{20};

struct Leaving {
  std::string uid;
  Duration deadline;
};

// Names of the containers that still run; none where the sandbox is gone.
std::vector<std::string> running(Runtime& runtime, const std::string& uid) {
  std::vector<std::string> out;
  const auto record = runtime.inspect(uid);
  if (!record || !record->alive) return out;
  for (const ContainerRecord& container : record->containers) {
    if (container.state == ContainerState::kRunning) out.push_back(container.name);
  }
  return out;
}

}  // namespace

void stop_all_pods(Runtime& runtime, const ShutdownOptions& options) {
  std::vector<Leaving> leaving;
  const std::vector<std::string> all = runtime.list();
  const Duration start = options.elapsed();
  for (const std::string& uid : all) {
    const std::vector<std::string> containers = running(runtime, uid);
    for (const std::string& container : containers) {
      // One that ended in between needs no signal.
      (void)runtime.signal(uid, container, SIGTERM);
    }
    if (containers.empty()) continue;
    const auto grace = options.graces.find(uid);
    leaving.push_back(
        {uid, start + (grace == options.graces.end() ? options.grace : grace->second)});
  }
  while (!leaving.empty()) {
    std::erase_if(leaving, [&](const Leaving& pod) {
      return options.elapsed() >= pod.deadline || running(runtime, pod.uid).empty();
    });
    if (!leaving.empty()) options.sleep(kShutdownLookEvery);
  }
  for (const std::string& uid : all) (void)runtime.stop_sandbox(uid);
}

}  // namespace skiff::node
