#include "assembly/serve.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <csignal>

#include "assembly/platform.h"

namespace skiff::assembly {
namespace {

// Every pod, watcher and connection costs a descriptor; the default of 1,024 is for other programs.
void raise_file_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
}

}  // namespace

int serve(const cli::UpOptions& options) {
  if (!options.kubeconfig.empty()) {
    fmt::print(stderr,
               "error: --kubeconfig: running the controllers against another cluster is not there "
               "yet; leave it out to run everything here\n");
    return 1;
  }
  raise_file_limit();
  // Blocked before the first thread starts, so that only sigwait below takes them.
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::atomic<bool> keep_pods = true;
  auto platform = Platform::start(options, [&keep_pods](bool keep) {
    keep_pods = keep;
    kill(getpid(), SIGTERM);
  });
  if (!platform) {
    fmt::print(stderr, "error: {}\n", platform.error().message);
    return 1;
  }
  if (options.ready) options.ready((*platform)->summary());
  int signal = 0;
  do {
    sigwait(&signals, &signal);
  } while (signal == SIGHUP);  // a terminal that closes is no reason to stop
  log_line(keep_pods ? "stopping; pods go on" : "stopping, pods too");
  (*platform)->stop(keep_pods);
  return 0;
}

}  // namespace skiff::assembly
