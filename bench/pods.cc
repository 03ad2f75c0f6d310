#include "bench/pods.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <thread>
#include <vector>

#include "base/json.h"
#include "bench/load.h"
#include "bench/report.h"
#include "bench/server.h"

namespace skiff::bench {
namespace {

using namespace std::chrono_literals;

constexpr uid_t kNobody = 65534;
const std::string kPods = "/api/v1/namespaces/pods/pods";

// How pods are kept apart. "Plain processes" is the strictest that has no network of its own.
enum class Mode { kOwnNetwork, kHostNetwork, kUnprivileged };

std::string pod_text(std::string_view name, Mode mode, std::string_view command) {
  return fmt::format(
      R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{}"}},"spec":{{"hostNetwork":{},)"
      R"("restartPolicy":"Never","terminationGracePeriodSeconds":0,"containers":[{{"name":"c",)"
      R"("image":"x","command":[{}]}}]}}}})",
      name, mode == Mode::kHostNetwork, command);
}

void make_namespace(Connection& c) {
  c.request("POST", "/api/v1/namespaces", R"({"metadata":{"name":"pods"}})");
}

void create(Connection& c, const std::string& text) {
  const auto answer = c.request("POST", kPods, text);
  if (answer.status == 201) return;
  fmt::print(stderr, "bench: a pod answered {}: {}\n", answer.status, answer.body);
  std::exit(1);
}

// Follows the pods of the bench by one watch, as any client would: what polls by lists would be
// measured itself.
class Follower {
 public:
  explicit Follower(const Target& target) : connection_(target) {
    connection_.send_request("GET", kPods + "?watch=true&resourceVersion=0");
  }

  // Until `n` pods have been in `phase`; false after `seconds`.
  bool wait(std::string_view phase, std::size_t n, int seconds) {
    const std::string wanted = fmt::format(R"("phase":"{}")", phase);
    const auto end = Clock::now() + std::chrono::seconds(seconds);
    std::set<std::string> seen;
    while (seen.size() < n) {
      if (Clock::now() > end) return false;
      text_ += connection_.read_some();
      for (std::size_t line; (line = text_.find('\n')) != std::string::npos;) {
        const std::string event = text_.substr(0, line);
        text_.erase(0, line + 1);
        if (event.find(wanted) == std::string::npos) continue;
        const std::size_t name = event.find(R"("metadata":{"name":")");
        if (name != std::string::npos)
          seen.insert(event.substr(name + 20, event.find('"', name + 20) - name - 20));
      }
      std::this_thread::sleep_for(5ms);
    }
    return true;
  }

 private:
  Connection connection_;
  std::string text_;
};

// A folder for each server, and none is removed before the end: a file system that has just lost
// thousands of files is slow to make new ones (ext4 without a journal looks at each of them).
std::string fresh_data(const PodsBench& bench) {
  static int count = 0;
  const std::string data = fmt::format("{}/pods-{}", bench.folder, ++count);
  std::filesystem::remove_all(data);
  return data;
}

struct Rate {
  bool all = false;
  double per_second = 0;
  double cpu_ms = 0;
};

// CPU of a Skiff that starts and stops without a pod.
double empty_cpu_seconds(const PodsBench& bench, uid_t user) {
  const double before = children_cpu_seconds();
  {
    Server server(bench.binary, fresh_data(bench), user);
    server.start();
  }
  reap_orphans();
  return children_cpu_seconds() - before;
}

Rate measure_rate(const PodsBench& bench, Mode mode, int pods) {
  const uid_t user = mode == Mode::kUnprivileged ? kNobody : 0;
  const double empty = empty_cpu_seconds(bench, user);
  const double before = children_cpu_seconds();
  Rate rate;
  {
    Server server(bench.binary, fresh_data(bench), user);
    server.start();
    Connection c(server.target());
    make_namespace(c);
    Follower follower(server.target());
    const auto start = Clock::now();
    for (int i = 0; i < pods; ++i) {
      create(c, pod_text(fmt::format("p{}", i), mode, R"("/bin/true")"));
    }
    rate.all = follower.wait("Succeeded", static_cast<std::size_t>(pods), 120);
    rate.per_second = pods / (ms_since(start) / 1000);
  }
  // The last shims end a moment after their pods.
  std::this_thread::sleep_for(500ms);
  reap_orphans();
  rate.cpu_ms = (children_cpu_seconds() - before - empty) / pods * 1000;
  return rate;
}

void show_rate(const PodsBench& bench, Mode mode, int pods, std::string_view how, double goal) {
  const Rate rate = measure_rate(bench, mode, pods);
  add(fmt::format("pods/s: {} of /bin/true to Succeeded, {}", pods, how),
      rate.all ? fmt::format("{:.0f}/s", rate.per_second) : "not all ended",
      goal > 0 ? fmt::format("{:.0f}/s", goal) : "", rate.all && rate.per_second >= goal);
  add("  CPU for one of them, of Skiff and all below it", fmt::format("{:.1f} ms", rate.cpu_ms));
}

// The time that `date +%s%N` in the pod printed, in ms.
double program_time_ms(Connection& c, const std::string& name) {
  const auto answer = c.request("GET", fmt::format("{}/{}/log", kPods, name));
  return answer.status == 200 ? std::strtod(answer.body.c_str(), nullptr) / 1e6 : 0;
}

double wall_ms() {
  return std::chrono::duration<double, std::milli>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string read_all(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

enum class Part { kShim, kInit, kProgram, kHelper };

// Processes that exist because of pods: shims and what is below them. A shim says by its name
// whose it is; its programs are found by their parents.
std::map<int, Part> pod_processes(const std::string& data) {
  std::map<int, int> parents;
  std::map<int, std::string> names;
  std::map<int, Part> out;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const int pid = std::atoi(entry.path().filename().c_str());
    if (pid <= 0) continue;
    const std::string stat = read_all(entry.path().string() + "/stat");
    const std::size_t open = stat.find('('), close = stat.rfind(')');
    if (open == std::string::npos || close == std::string::npos) continue;
    names[pid] = stat.substr(open + 1, close - open - 1);
    parents[pid] = std::atoi(stat.c_str() + close + 4);
    const std::string line = read_all(entry.path().string() + "/cmdline");
    if (line.find(data + "/pods") == std::string::npos) continue;
    if (names[pid] == "skiff-shim")
      out[pid] = Part::kShim;
    else if (names[pid] == "skiff-init")
      out[pid] = Part::kInit;
    else if (names[pid] == "skiff-nursery")
      out[pid] = Part::kHelper;
  }
  for (const auto& [pid, parent] : parents) {
    const auto above = out.find(parent);
    if (!out.contains(pid) && above != out.end() && above->second == Part::kInit) {
      out[pid] = Part::kProgram;
    }
  }
  return out;
}

double fork_ms(int times, int spaces) {
  const auto start = Clock::now();
  for (int i = 0; i < times; ++i) {
    const pid_t pid = fork();
    if (pid == 0) {
      if (spaces != 0 && unshare(spaces) != 0) _exit(1);
      // The first process of a pid namespace is a child of who made it.
      const pid_t inner = (spaces & CLONE_NEWPID) != 0 ? fork() : 0;
      if (inner == 0) {
        execl("/bin/true", "true", nullptr);
        _exit(1);
      }
      int status = 0;
      waitpid(inner, &status, 0);
      _exit(WEXITSTATUS(status));
    }
    int status = 0;
    waitpid(pid, &status, 0);
    if (status != 0) return -1;
  }
  return ms_since(start) / times;
}

void show_floor(std::string_view what, int times, int spaces) {
  const double ms = fork_ms(times, spaces);
  add(fmt::format("{}, {} times one after another", what, times),
      ms < 0 ? "not allowed here" : fmt::format("{:.0f}/s, {:.2f} ms", 1000 / ms, ms));
}

}  // namespace

void process_floors(int times) {
  show_floor("fork + exec /bin/true", times, 0);
  show_floor("  unshare(mnt,pid,ipc,uts) + fork + exec", times,
             CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS);
  show_floor("  unshare(net,mnt,pid,ipc,uts) + fork + exec", times,
             CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS);
}

void pod_rates(const PodsBench& bench, int pods, std::string_view only) {
  const auto wanted = [&](std::string_view part) { return only.empty() || only == part; };
  if (geteuid() != 0) {
    return show_rate(bench, Mode::kHostNetwork, pods, "plain processes (not root)", 100);
  }
  chmod(bench.folder.c_str(), 0711);
  if (wanted("plain")) {
    // Where anybody may run it: the one in the repository may be in somebody's home.
    PodsBench other = bench;
    other.binary = bench.folder + "/skiff";
    std::filesystem::copy_file(bench.binary, other.binary,
                               std::filesystem::copy_options::overwrite_existing);
    show_rate(other, Mode::kUnprivileged, pods, "plain processes (Skiff not root)", 100);
  }
  if (wanted("host")) {
    show_rate(bench, Mode::kHostNetwork, pods, "hostNetwork, all other isolation", 0);
  }
  if (wanted("own")) show_rate(bench, Mode::kOwnNetwork, pods, "own network namespaces", 50);
}

void pod_latency(const PodsBench& bench, int per_second, int seconds) {
  Server server(bench.binary, fresh_data(bench));
  server.start();
  Connection c(server.target());
  make_namespace(c);
  Follower follower(server.target());
  std::vector<double> created;
  const auto start = Clock::now();
  for (int i = 0; i < per_second * seconds; ++i) {
    std::this_thread::sleep_until(start + i * 1000ms / per_second);
    created.push_back(wall_ms());
    create(c, pod_text(fmt::format("p{}", i), Mode::kOwnNetwork, R"("/bin/date","+%s%N")"));
  }
  const bool all = follower.wait("Succeeded", created.size(), 60);
  std::vector<double> took;
  for (std::size_t i = 0; i < created.size(); ++i) {
    took.push_back(program_time_ms(c, fmt::format("p{}", i)) - created[i]);
  }
  // On the path: the pod and its binding, each in a commit of its own, and the record that the
  // container runs, which is a file and its folder.
  constexpr int kSyncs = 4;
  const double p50 = median(took), syncs = kSyncs * bench.sync_ms;
  add(fmt::format("create to the program's first look at the clock, {} pods/s: p50", per_second),
      all ? fmt::format("{:.1f} ms", p50) : "not all ended",
      fmt::format("{} syncs ({:.2f} ms) + 25 ms", kSyncs, syncs), all && p50 <= syncs + 25);
  add("  p99", fmt::format("{:.1f} ms", quantile(took, 0.99)));
}

void pod_memory(const PodsBench& bench, int pods) {
  const std::string data = fresh_data(bench);
  Server server(bench.binary, data);
  server.start();
  Connection c(server.target());
  make_namespace(c);
  // One first: what the first pod makes Skiff load is no cost of each.
  Follower follower(server.target());
  create(c, pod_text("first", Mode::kOwnNetwork, R"("/bin/sleep","100000")"));
  follower.wait("Running", 1, 30);
  std::this_thread::sleep_for(1s);
  const double before = pss_mb(server.pid());
  const std::map<int, Part> old = pod_processes(data);
  for (int i = 0; i < pods; ++i) {
    create(c, pod_text(fmt::format("s{}", i), Mode::kOwnNetwork, R"("/bin/sleep","100000")"));
  }
  const bool all = follower.wait("Running", static_cast<std::size_t>(pods), 60);
  std::this_thread::sleep_for(1s);
  std::map<Part, double> mb;
  std::map<Part, int> n;
  for (const auto& [pid, part] : pod_processes(data)) {
    if (old.contains(pid) && part != Part::kHelper) continue;
    mb[part] += pss_mb(pid);
    ++n[part];
  }
  const double skiff = pss_mb(server.pid()) - before;
  const double each =
      (mb[Part::kShim] + mb[Part::kInit] + mb[Part::kHelper] + skiff) / std::max(1, pods);
  const auto per = [&](double total) { return fmt::format("{:.2f} MB", total / pods); };
  add(fmt::format("memory of a running pod (PSS, {} pods of sleep, all that is ours)", pods),
      all ? fmt::format("{:.2f} MB", each) : "not all run", "2 MB", all && each <= 2);
  add(fmt::format("  its shim ({} processes)", n[Part::kShim]), per(mb[Part::kShim]));
  add(fmt::format("  its init ({} processes)", n[Part::kInit]), per(mb[Part::kInit]));
  add("  growth of Skiff itself", per(skiff));
  add(fmt::format("  where shims come from ({} processes), shared", n[Part::kHelper]),
      per(mb[Part::kHelper]));
  add(fmt::format("  apart: the user's own program ({} processes)", n[Part::kProgram]),
      per(mb[Part::kProgram]));
  c.request("DELETE", kPods);
}

}  // namespace skiff::bench
