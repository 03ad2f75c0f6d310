// make bench: the figures of docs/benchmarks.md, each beside what it depends on.
//
// Starts its own Skiff on loopback with a fresh data folder, and stops it again.
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "bench/definitions.h"
#include "bench/load.h"
#include "bench/pods.h"
#include "bench/report.h"
#include "bench/server.h"

namespace skiff::bench {
namespace {

using namespace std::chrono_literals;

void start_and_idle(const std::string& binary, const std::string& data) {
  std::vector<double> fresh, again;
  for (int i = 0; i < 5; ++i) {
    std::filesystem::remove_all(data);
    Server server(binary, data);
    fresh.push_back(server.start());
    server.stop();
    again.push_back(server.start());
  }
  add("ready after start, empty folder (median of 5)", fmt::format("{:.0f} ms", median(fresh)),
      "150 ms", median(fresh) <= 150);
  add("ready after start, existing folder (median of 5)", fmt::format("{:.0f} ms", median(again)),
      "150 ms", median(again) <= 150);
  Server server(binary, data);
  server.start();
  std::this_thread::sleep_for(3s);
  const double cpu = cpu_seconds(server.pid());
  std::this_thread::sleep_for(5s);
  add("idle memory (RSS)", fmt::format("{:.1f} MB", rss_mb(server.pid())), "40 MB",
      rss_mb(server.pid()) <= 40);
  add("idle CPU over 5 s", fmt::format("{:.2f} %", (cpu_seconds(server.pid()) - cpu) / 5 * 100));
}

std::string config_map(int thread, std::uint64_t n) {
  return fmt::format(
      R"({{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"c-{}-{}"}},"data":{{"k":"{}"}}}})",
      thread, n, std::string(500, 'x'));
}

void creates(double sync) {
  const std::string target = "/api/v1/namespaces/default/configmaps";
  const auto create = [&](int base) {
    return [base, &target](int thread, std::uint64_t n, Connection& c) {
      const auto answer = c.request("POST", target, config_map(base + thread, n));
      if (answer.status != 201) {
        fmt::print(stderr, "bench: create answered {}: {}\n", answer.status, answer.body);
        std::exit(1);
      }
    };
  };
  const double one = calls_per_second({.port = kHttp}, 1, 3, create(1000));
  add("one create, one client", fmt::format("{:.2f} ms", 1000 / one),
      fmt::format("sync {:.2f} ms + 0.5", sync), 1000 / one <= sync + 0.5);
  std::vector<double> runs;
  for (int i = 0; i < 3; ++i)
    runs.push_back(calls_per_second({.port = kHttp}, 64, 3, create(2000 + 100 * i)));
  add("creates/s, 64 clients (median of 3)", fmt::format("{:.0f}/s", median(runs)));
  add("  per measured sync", fmt::format("{:.1f} creates", median(runs) * sync / 1000));
  const double gets = calls_per_second(
      {.port = kHttp}, 8, 3,
      [](int, std::uint64_t, Connection& c) { c.request("GET", "/api/v1/namespaces/default"); });
  add("GETs/s, 8 clients", fmt::format("{:.0f}/s", gets));
}

// How many objects of a listing satisfy `wanted`, by a text they contain.
std::size_t count(Connection& c, const std::string& target, std::string_view wanted) {
  const std::string body = c.request("GET", target).body;
  std::size_t n = 0;
  for (std::size_t at = body.find(wanted); at != std::string::npos; at = body.find(wanted, at + 1))
    ++n;
  return n;
}

bool wait_count(Connection& c, const std::string& target, std::string_view wanted, std::size_t n,
                int seconds) {
  const auto end = Clock::now() + std::chrono::seconds(seconds);
  while (count(c, target, wanted) < n) {
    if (Clock::now() > end) return false;
    std::this_thread::sleep_for(20ms);
  }
  return true;
}

void jobs(std::size_t n) {
  Connection c(kHttp);
  c.request("POST", "/api/v1/namespaces", R"({"metadata":{"name":"jobs"}})");
  const auto start = Clock::now();
  for (std::size_t i = 0; i < n; ++i) {
    const auto answer = c.request(
        "POST", "/apis/kubeflow.org/v1/namespaces/jobs/tfjobs",
        fmt::format(
            R"({{"apiVersion":"kubeflow.org/v1","kind":"TFJob","metadata":{{"name":"j{}"}},"spec":{{)"
            R"("tfReplicaSpecs":{{"Worker":{{"replicas":2,"template":{{"spec":{{"containers":[{{"name":)"
            R"("tensorflow","image":"x","command":["/bin/true"]}}]}}}}}}}}}}}})",
            i));
    if (answer.status != 201) {
      fmt::print(stderr, "bench: TFJob answered {}: {}\n", answer.status, answer.body);
      std::exit(1);
    }
  }
  const bool all = wait_count(c, "/api/v1/namespaces/jobs/pods", R"("kind":"Pod")", 2 * n, 60);
  add(fmt::format("{} TFJobs of 2 workers until all pods exist", n),
      all ? fmt::format("{:.2f} s", ms_since(start) / 1000) : "not all pods exist", "", all);
  const bool ended =
      wait_count(c, "/apis/kubeflow.org/v1/namespaces/jobs/tfjobs", R"("TFJobSucceeded")", n, 120);
  add("  until all have succeeded",
      ended ? fmt::format("{:.2f} s", ms_since(start) / 1000) : "not all", "", ended);
}

void api_and_jobs(const std::string& binary, const std::string& data, double sync, bool api) {
  std::filesystem::remove_all(data);
  Server server(binary, data);
  server.start();
  if (api) creates(sync);
  jobs(100);
  add("memory after all this (RSS)", fmt::format("{:.1f} MB", rss_mb(server.pid())));
}

// `only`: the name of one part, for who works on it.
int run(const std::string& binary, const std::string& folder, std::string_view only) {
  std::filesystem::create_directories(folder);
  adopt_orphans();
  const auto wanted = [&](std::string_view part) { return only.empty() || only == part; };
  const std::string data = folder + "/data";
  const double sync = sync_ms(folder);
  add("one write + fdatasync here (median of 51)", fmt::format("{:.2f} ms", sync));
  const PodsBench pods{.binary = binary, .folder = folder, .sync_ms = sync};
  if (wanted("start")) start_and_idle(binary, data);
  if (wanted("api") || wanted("jobs")) api_and_jobs(binary, data, sync, wanted("api"));
  if (wanted("definitions")) definitions(binary, data);
  if (wanted("floors")) process_floors(1000);
  if (wanted("rates")) pod_rates(pods, 1000, "");
  for (const char* one : {"plain", "host", "own"}) {
    if (only == one) pod_rates(pods, 1000, one);
  }
  if (wanted("latency")) pod_latency(pods, 5, 10);
  if (wanted("memory")) pod_memory(pods, 200);
  write_json(folder + "/bench.json");
  return 0;
}

}  // namespace
}  // namespace skiff::bench

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) {
    fmt::print(stderr,
               "usage: skiff_bench SKIFF-BINARY WORK-FOLDER "
               "[start|api|jobs|definitions|floors|rates|plain|host|own|latency|memory]\n");
    return 2;
  }
  return skiff::bench::run(argv[1], argv[2], argc == 4 ? argv[3] : "");
}
