// The load of bench/beside_operator.py: TFJobs of two workers on a real API server, and the nodes
// that are missing there, which say of every pod that it runs and then that it succeeded.
//
//   skiff_operator_load PORT TOKEN NAMESPACE JOBS
//
// Prints one line of JSON: seconds from the first create until every pod was there, and until
// every job had succeeded.
#include <fmt/format.h>
#include <poll.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/json.h"
#include "bench/load.h"

namespace skiff::bench {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr int kWorkers = 2;
constexpr int kCreators = 4;
constexpr int kNodes = 8;
constexpr auto kPatience = 400s;

[[noreturn]] void give_up(std::string_view what) {
  fmt::print(stderr, "bench: {}\n", what);
  std::exit(1);
}

// The events of a watch, one JSON text each, out of a chunked answer.
class EventStream {
 public:
  EventStream(const Target& target, const std::string& path) : connection_(target) {
    connection_.send_request("GET", path + "?watch=1&timeoutSeconds=3600");
  }

  // What comes within a moment.
  std::vector<json::value> read() {
    pollfd ready{.fd = connection_.fd(), .events = POLLIN, .revents = 0};
    if (poll(&ready, 1, 50) > 0) raw_ += connection_.read_some();
    unchunk();
    std::vector<json::value> out;
    for (std::size_t end; (end = text_.find('\n')) != std::string::npos; text_.erase(0, end + 1)) {
      auto event = json::parse(std::string_view(text_).substr(0, end));
      if (!event) give_up("a watch sent what is no JSON");
      out.push_back(std::move(*event));
    }
    return out;
  }

 private:
  void unchunk() {
    std::size_t at = 0;
    if (!head_seen_) {
      const std::size_t end = raw_.find("\r\n\r\n");
      if (end == std::string::npos) return;
      if (!raw_.starts_with("HTTP/1.1 200")) give_up("a watch was refused");
      head_seen_ = true;
      at = end + 4;
    }
    for (std::size_t line; (line = raw_.find("\r\n", at)) != std::string::npos;) {
      const std::size_t size = std::strtoul(raw_.c_str() + at, nullptr, 16);
      if (size == 0) give_up("a watch ended");
      if (raw_.size() < line + 2 + size + 2) break;
      text_.append(raw_, line + 2, size);
      at = line + 2 + size + 2;
    }
    raw_.erase(0, at);
  }

  Connection connection_;
  std::string raw_ = {};
  std::string text_ = {};
  bool head_seen_ = false;
};

// Stands in for the nodes: one watch of all pods, and a connection for each node, so that what is
// measured does not wait for them. Pods they have said the last word about are not looked at again.
class Nodes {
 public:
  Nodes(const Target& target, std::string ns)
      : target_(target), pods_("/api/v1/namespaces/" + std::move(ns) + "/pods") {
    for (int i = 0; i < kNodes; ++i) writers_.emplace_back([this] { write(); });
    watcher_ = std::thread([this] { look(); });
  }
  ~Nodes() {
    stopping_ = true;
    watcher_.join();
    changed_.notify_all();
    for (std::thread& writer : writers_) writer.join();
  }
  Nodes(const Nodes&) = delete;
  Nodes& operator=(const Nodes&) = delete;

  std::size_t seen() const { return seen_; }

 private:
  struct Report {
    std::string pod;
    bool ended;
  };

  void look() {
    EventStream events(target_, pods_);
    std::set<std::string> running, ended;
    while (!stopping_) {
      for (const json::value& event : events.read()) {
        const std::string name(json::get_string(event, {"object", "metadata", "name"}));
        const std::string_view phase = json::get_string(event, {"object", "status", "phase"});
        if (phase == "Pending" && running.insert(name).second) {
          ++seen_;
          add({.pod = name, .ended = false});
        } else if (phase == "Running" && ended.insert(name).second) {
          add({.pod = name, .ended = true});
        }
      }
    }
  }

  void add(Report report) {
    const std::lock_guard lock(mutex_);
    reports_.push_back(std::move(report));
    changed_.notify_one();
  }

  void write() {
    Connection writer(target_);
    // As kubelets have it.
    writer.patch_type = "application/strategic-merge-patch+json";
    writer.accept = "application/vnd.kubernetes.protobuf";
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return stopping_ || !reports_.empty(); });
      if (stopping_) return;
      const Report next = std::move(reports_.front());
      reports_.pop_front();
      lock.unlock();
      if (next.ended) {
        report(writer, next.pod, "Succeeded",
               R"({"terminated":{"exitCode":0,"reason":"Completed",)"
               R"("startedAt":"2026-01-01T00:00:00Z","finishedAt":"2026-01-01T00:00:01Z"}})");
      } else {
        report(writer, next.pod, "Running", R"({"running":{"startedAt":"2026-01-01T00:00:00Z"}})");
      }
      lock.lock();
    }
  }

  void report(Connection& writer, const std::string& name, std::string_view phase,
              std::string_view state) {
    const bool runs = phase == "Running";
    const auto answer = writer.request(
        "PATCH", pods_ + "/" + name + "/status",
        fmt::format(
            R"({{"status":{{"phase":"{}","podIP":"10.1.2.3","conditions":[{{"type":"Ready","status":"{}"}}],)"
            R"("containerStatuses":[{{"name":"tensorflow","image":"x","imageID":"","ready":{},)"
            R"("restartCount":0,"state":{}}}]}}}})",
            phase, runs ? "True" : "False", runs, state));
    // A pod that was deleted meanwhile is nobody's any more.
    if (answer.status != 200 && answer.status != 404) give_up("a pod's status: " + answer.body);
  }

  const Target target_;
  const std::string pods_;
  std::atomic<bool> stopping_ = false;
  std::atomic<std::size_t> seen_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Report> reports_;
  std::vector<std::thread> writers_;
  std::thread watcher_;
};

std::string tfjob(int i) {
  return fmt::format(
      R"({{"apiVersion":"kubeflow.org/v1","kind":"TFJob","metadata":{{"name":"job-{}"}},"spec":{{)"
      R"("tfReplicaSpecs":{{"Worker":{{"replicas":{},"restartPolicy":"Never","template":{{"spec":{{)"
      R"("containers":[{{"name":"tensorflow","image":"x","command":["python","/opt/train.py"]}}]}}}}}}}}}}}})",
      i, kWorkers);
}

void create_jobs(const Target& target, const std::string& path, int jobs) {
  std::atomic<int> next = 0;
  std::vector<std::jthread> creators;
  for (int t = 0; t < kCreators; ++t) {
    creators.emplace_back([&] {
      Connection c(target);
      for (int i = next++; i < jobs; i = next++) {
        const auto answer = c.request("POST", path, tfjob(i));
        if (answer.status != 201) give_up("a TFJob: " + answer.body);
      }
    });
  }
}

bool succeeded(const json::value& job) {
  for (const json::value& condition : json::get_array(job, {"status", "conditions"})) {
    if (json::get_string(condition, {"type"}) != "Succeeded") continue;
    return json::get_string(condition, {"status"}) == "True";
  }
  return false;
}

void run(const Target& target, const std::string& ns, int jobs) {
  Connection c(target);
  const auto made =
      c.request("POST", "/api/v1/namespaces", fmt::format(R"({{"metadata":{{"name":"{}"}}}})", ns));
  if (made.status != 201) give_up("a namespace: " + made.body);
  // Its account comes a moment later, and without it no pod is let in.
  while (c.request("GET", "/api/v1/namespaces/" + ns + "/serviceaccounts/default").status != 200) {
    std::this_thread::sleep_for(20ms);
  }
  const std::string path = "/apis/kubeflow.org/v1/namespaces/" + ns + "/tfjobs";
  Nodes nodes(target, ns);
  EventStream events(target, path);
  events.read();
  const auto start = Clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  std::jthread creating([&] { create_jobs(target, path, jobs); });
  double pods_s = 0;
  std::set<std::string> done;
  while (done.size() < static_cast<std::size_t>(jobs)) {
    for (const json::value& event : events.read()) {
      const json::value& job = event.at("object");
      if (succeeded(job)) done.emplace(json::get_string(job, {"metadata", "name"}));
    }
    if (pods_s == 0 && nodes.seen() >= static_cast<std::size_t>(jobs * kWorkers)) {
      pods_s = seconds();
    }
    if (Clock::now() - start > kPatience) give_up(fmt::format("{} jobs have ended", done.size()));
  }
  fmt::print("{{\"pods_s\": {:.3f}, \"all_s\": {:.3f}}}\n", pods_s, seconds());
}

}  // namespace
}  // namespace skiff::bench

int main(int argc, char** argv) {
  if (argc != 5) {
    fmt::print(stderr, "usage: skiff_operator_load PORT TOKEN NAMESPACE JOBS\n");
    return 2;
  }
  skiff::bench::run(
      {.port = static_cast<std::uint16_t>(std::atoi(argv[1])), .tls = true, .token = argv[2]},
      argv[3], std::atoi(argv[4]));
}
