// make bench: how the embedded platform grows. One job of up to ten thousand pods from start to
// end, what other jobs notice of it, and ten thousand jobs that have ended and are kept.
//
// No pod is run: hollow nodes say what a node would. What is measured is the loop, the thread that
// all controllers and the scheduler share.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <deque>
#include <filesystem>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "api/meta.h"
#include "apiserver/upkeep/compaction.h"
#include "base/check.h"
#include "bench/embedded/hollow.h"
#include "bench/embedded/world.h"
#include "bench/load.h"
#include "bench/report.h"

namespace skiff::bench {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr std::string_view kNs = "default";
constexpr int kNodes = 100;
constexpr auto kPatience = 300s;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Framework {
  const char* kind;
  const char* plural;
  const char* replicas;
  const char* container;
};
constexpr Framework kTensorFlow{"TFJob", "tfjobs", "tfReplicaSpecs", "tensorflow"};
constexpr Framework kPyTorch{"PyTorchJob", "pytorchjobs", "pytorchReplicaSpecs", "pytorch"};

api::Resource resource(const Framework& framework) {
  return {
      .group = "kubeflow.org", .version = "v1", .plural = framework.plural, .kind = framework.kind};
}

client::Write job(const Framework& framework, const std::string& name, std::int64_t workers,
                  bool held) {
  json::object labels;
  if (held) labels[kHeldLabel] = "true";
  const json::value pod_template = json::object{
      {"metadata", {{"labels", labels}}},
      {"spec",
       {{"containers",
         json::array{json::object{{"name", framework.container},
                                  {"image", "registry.example.com/train:1"},
                                  {"command", json::array{"python", "/opt/train.py"}}}}}}}};
  return {.resource = resource(framework),
          .ns = std::string(kNs),
          .body = json::object{
              {"apiVersion", "kubeflow.org/v1"},
              {"kind", framework.kind},
              {"metadata", {{"name", name}}},
              {"spec",
               {{framework.replicas,
                 {{"Worker", {{"replicas", workers}, {"template", pod_template}}}}}}}}};
}

void create(client::Client& client, const client::Write& write) {
  const auto made = client.write(write);
  if (made) return;
  fmt::print(stderr, "bench: {}\n", made.error().message);
  std::exit(1);
}

template <typename Done>
void wait_for(std::string_view what, Done done) {
  for (const auto start = Clock::now(); !done(); std::this_thread::sleep_for(2ms)) {
    if (Clock::now() - start < kPatience) continue;
    fmt::print(stderr, "bench: {} did not happen\n", what);
    std::exit(1);
  }
}

bool succeeded(client::Client& client, const Framework& framework, const std::string& name) {
  const auto now = client.get(resource(framework), kNs, name);
  return now && api::condition_true(*now, "Succeeded");
}

// Seconds until every pod and every service of one job is there.
double objects_of_a_job(const std::string& folder, const Framework& framework,
                        std::size_t replicas) {
  EmbeddedWorld world(folder);
  const auto client = world.client();
  const std::size_t others = world.store().list("services", kNs).entries.size();
  const auto start = Clock::now();
  create(*client, job(framework, "wide", static_cast<std::int64_t>(replicas), false));
  wait_for("a wide job's objects", [&] {
    return world.store().list("pods", kNs).entries.size() >= replicas &&
           world.store().list("services", kNs).entries.size() >= replicas + others;
  });
  return seconds_since(start);
}

void wide_jobs(const std::string& folder) {
  for (const Framework& framework : {kPyTorch, kTensorFlow}) {
    std::vector<double> runs;
    for (int i = 0; i < 3; ++i) runs.push_back(objects_of_a_job(folder, framework, 1000));
    add(fmt::format("{} of 1,000 replicas until its pods and services exist", framework.kind),
        fmt::format("{:.2f} s", median(runs)), "2 s", median(runs) <= 2);
  }
}

// Makes small jobs at a steady pace, whether or not the last one has been seen to, and notes when
// the pod of each is there. Late makes late: what the platform holds up counts in full.
class Probes {
 public:
  explicit Probes(EmbeddedWorld& world) : world_(world), client_(world.client()) {}

  void start() {
    thread_ = std::thread([this] { run(); });
  }
  std::vector<double> stop() {
    stopping_ = true;
    thread_.join();
    return std::move(lags_ms_);
  }

 private:
  static constexpr auto kPace = 50ms;

  struct Probe {
    std::string pod;
    Clock::time_point due;
  };

  void run() {
    auto next = Clock::now();
    for (int i = 0; !stopping_ || !open_.empty(); std::this_thread::sleep_for(500us)) {
      if (!stopping_ && Clock::now() >= next) {
        const std::string name = fmt::format("probe-{}", i++);
        create(*client_, job(kTensorFlow, name, 1, false));
        open_.push_back({.pod = name + "-worker-0", .due = next});
        next += kPace;
      }
      std::erase_if(open_, [&](const Probe& probe) {
        const store::Key key{.resource = "pods", .ns = std::string(kNs), .name = probe.pod};
        if (world_.store().get(key) == nullptr) return false;
        lags_ms_.push_back(seconds_since(probe.due) * 1000);
        return true;
      });
    }
  }

  EmbeddedWorld& world_;
  std::unique_ptr<client::LocalClient> client_;
  std::atomic<bool> stopping_ = false;
  std::deque<Probe> open_ = {};
  std::vector<double> lags_ms_ = {};
  std::thread thread_;
};

struct Life {
  double loop_s = 0;
  double writer_s = 0;
  double planner_s = 0;
  double upkeep_s = 0;
  double wall_s = 0;
  std::vector<double> lags_ms = {};
};

// One job from its creation until it has succeeded; all its pods run together in between.
Life life_of_a_job(const std::string& folder, std::size_t pods, bool with_others) {
  EmbeddedWorld world(folder);
  HollowNodes nodes(world, kNodes, 150);
  Probes probes(world);
  const auto client = world.client();
  std::this_thread::sleep_for(500ms);
  const EmbeddedWorld::Cpu before = world.cpu_seconds();
  if (with_others) probes.start();
  const auto start = Clock::now();
  create(*client, job(kPyTorch, "large", static_cast<std::int64_t>(pods), true));
  const auto phase = [&](const char* what) {
    if (std::getenv("SKIFF_BENCH_PHASES") == nullptr) return;
    fmt::print(stderr, "  {}: {:.2f} s, loop {:.2f} s\n", what, seconds_since(start),
               world.cpu_seconds().loop - before.loop);
  };
  wait_for("the pods", [&] { return world.store().list("pods", kNs).entries.size() >= pods; });
  phase("pods exist");
  wait_for("all running", [&] { return nodes.held_running() >= pods; });
  phase("all run");
  nodes.let_go();
  wait_for("success", [&] { return succeeded(*client, kPyTorch, "large"); });
  phase("succeeded");
  Life out{.wall_s = seconds_since(start)};
  if (with_others) out.lags_ms = probes.stop();
  const EmbeddedWorld::Cpu after = world.cpu_seconds();
  out.loop_s = after.loop - before.loop;
  out.writer_s = after.writer - before.writer;
  out.planner_s = after.planner - before.planner;
  out.upkeep_s = after.upkeep - before.upkeep;
  return out;
}

void large_job(const std::string& folder, std::size_t pods) {
  const Life life = life_of_a_job(folder, pods, true);
  const double goal = 20.0 * static_cast<double>(pods) / 10'000;
  add(fmt::format("a job of {} pods from start to end: loop CPU", pods),
      fmt::format("{:.1f} s", life.loop_s), fmt::format("{:.0f} s", goal), life.loop_s <= goal);
  add("  beside it: long plans, long submits, garbage",
      fmt::format("{:.1f}, {:.1f}, {:.1f} s", life.planner_s, life.writer_s, life.upkeep_s));
  add("  the same by the clock", fmt::format("{:.1f} s", life.wall_s));
  const double p99 = quantile(life.lags_ms, 0.99);
  add(fmt::format("  meanwhile {} small jobs, 20/s: create to pod, p99", life.lags_ms.size()),
      fmt::format("{:.0f} ms", p99), "100 ms", p99 <= 100);
  add("  p50, longest",
      fmt::format("{:.1f}, {:.0f} ms", median(life.lags_ms), quantile(life.lags_ms, 1)));
}

void growth(const std::string& folder) {
  std::vector<double> small;
  for (int i = 0; i < 5; ++i) small.push_back(life_of_a_job(folder, 100, false).loop_s);
  const double middle = life_of_a_job(folder, 1'000, false).loop_s;
  const double large = life_of_a_job(folder, 10'000, false).loop_s;
  const double exponent = std::log(large / median(small)) / std::log(100);
  add("loop CPU of a job alone: 100, 1,000, 10,000 pods",
      fmt::format("{:.3f}, {:.2f}, {:.1f} s", median(small), middle, large));
  add("  growth from 100 to 10,000 pods", fmt::format("n^{:.2f}", exponent), "n^1.1",
      exponent <= 1.1);
}

// Until nothing has been written for a while. The nodes' beats are further apart than that.
void wait_until_calm(const store::Store& store) {
  const auto start = Clock::now();
  auto since = start;
  store::Revision last = store.revision();
  while (Clock::now() - since < 3s && Clock::now() - start < 60s) {
    std::this_thread::sleep_for(50ms);
    const store::Revision now = store.revision();
    if (now == last) continue;
    last = now;
    since = Clock::now();
  }
}

// Objects that are not packed though their time has come; the nodes' beats are never that old.
std::size_t unpacked(const store::Store& store, store::Revision until) {
  constexpr std::size_t kSmall = 1024;
  std::size_t count = 0;
  for (const std::string& resource : store.resources()) {
    const store::Listing listing = store.list(resource);
    if (listing.entries.size() < 1000) continue;
    for (const store::EntryPtr& entry : listing.entries) {
      if (entry->revision() <= until && entry->size() >= kSmall && !entry->packed()) ++count;
    }
  }
  return count;
}

// Until what has ended is packed and history that nobody asks for any more is let go: that happens
// once in Compaction::kRecent, to what is older than that. Seconds that took.
double settle(const store::Store& store) {
  constexpr auto kForgotten = 2 * apiserver::Compaction::kRecent + 5s;
  const store::Revision until = store.revision();
  const auto start = Clock::now();
  while (Clock::now() - start < kForgotten) {
    std::this_thread::sleep_for(1s);
    if (std::getenv("SKIFF_BENCH_PHASES") == nullptr) continue;
    fmt::print(stderr, "  {:.0f} s: {:.0f} MB, {} unpacked\n", seconds_since(start),
               rss_mb(getpid()), unpacked(store, until));
  }
  return seconds_since(start);
}

void kept_jobs(const std::string& folder, int jobs) {
  EmbeddedWorld world(folder);
  HollowNodes nodes(world, kNodes, 150);
  const auto client = world.client();
  const auto start = Clock::now();
  for (int i = 0; i < jobs; ++i) {
    create(*client, job(kTensorFlow, fmt::format("kept-{}", i), 1, false));
    // No more at once than the nodes can run: this is about jobs that have ended.
    if (i % 500 == 499) {
      wait_for("an end",
               [&] { return succeeded(*client, kTensorFlow, fmt::format("kept-{}", i)); });
    }
  }
  for (int i = 0; i < jobs; ++i) {
    wait_for("an end", [&] { return succeeded(*client, kTensorFlow, fmt::format("kept-{}", i)); });
  }
  const double wall = seconds_since(start);
  wait_until_calm(world.store());
  const double fresh = rss_mb(getpid());
  const double settling = settle(world.store());
  const double cpu = cpu_seconds(getpid());
  std::this_thread::sleep_for(10s);
  const double idle = (cpu_seconds(getpid()) - cpu) / 10 * 100;
  const double memory = rss_mb(getpid());
  add(fmt::format("{} finished TFJobs kept, with pod and service: memory (RSS)", jobs),
      fmt::format("{:.0f} MB", memory), "300 MB", memory <= 300);
  add(fmt::format("  that is {:.0f} s after the last has ended; at once", settling),
      fmt::format("{:.0f} MB", fresh));
  add("  idle CPU over 10 s", fmt::format("{:.2f} %", idle), "1 %", idle < 1);
  add("  until all had ended", fmt::format("{:.1f} s", wall));
}

// `only`: the name of one part, for who works on it; `size`: pods of the large job, jobs kept.
int run(const std::string& folder, std::string_view only, std::size_t size) {
  const auto wanted = [&](std::string_view part) { return only.empty() || only == part; };
  const std::string data = folder + "/embedded";
  // First: memory that an earlier part has given back may still be counted.
  if (wanted("kept")) kept_jobs(data, static_cast<int>(size));
  if (wanted("wide")) wide_jobs(data);
  if (wanted("large")) large_job(data, size);
  if (wanted("growth")) growth(data);
  std::filesystem::remove_all(data);
  return 0;
}

}  // namespace
}  // namespace skiff::bench

int main(int argc, char** argv) {
  if (argc < 2 || argc > 4) {
    fmt::print(stderr, "usage: skiff_embedded_bench WORK-FOLDER [kept|wide|large|growth] [SIZE]\n");
    return 2;
  }
  return skiff::bench::run(argv[1], argc > 2 ? argv[2] : "",
                           argc > 3 ? std::stoul(argv[3]) : 10'000);
}
