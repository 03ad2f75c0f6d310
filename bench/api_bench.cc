// One API server under load, Skiff's or Kubernetes': figures as a JSON object on standard output.
// tools/bench runs it against both and sets the figures side by side.
//
//   skiff_api_bench PORT TOKEN [growth]      TLS; growth: up to 100,000 objects as well
#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "base/json.h"
#include "bench/load.h"

namespace skiff::bench {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr int kClients = 64;
constexpr int kPods = 10'000;
constexpr int kWatchers = 500;
constexpr int kEventsPerSecond = 200;
constexpr auto kWatchTime = 5s;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return -1;
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1))];
}

void expect(const Connection::Answer& answer, int status, std::string_view what) {
  if (answer.status == status) return;
  fmt::print(stderr, "bench: {} answered {}: {}\n", what, answer.status,
             answer.body.substr(0, 500));
  std::exit(1);
}

void make_namespace(const Target& target, const std::string& name) {
  Connection c(target);
  expect(c.request(
             "POST", "/api/v1/namespaces",
             fmt::format(R"({{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{}"}}}})",
                         name)),
         201, "a new namespace");
  // Pods need the namespace's service account.
  for (int i = 0; i < 200; ++i) {
    if (c.request("GET", "/api/v1/namespaces/" + name + "/serviceaccounts/default").status == 200)
      return;
    std::this_thread::sleep_for(50ms);
  }
}

std::string config_map(const std::string& name) {
  return fmt::format(
      R"({{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{}"}},"data":{{"k":"{}"}}}})",
      name, std::string(500, 'x'));
}

// `n` objects in all, from 64 connections.
void make_many(const Target& target, int n, const std::string& path,
               const std::function<std::string(int)>& body) {
  std::atomic<int> next = 0;
  std::vector<std::jthread> pool;
  for (int t = 0; t < kClients; ++t) {
    pool.emplace_back([&] {
      Connection c(target);
      for (int i = next++; i < n; i = next++) expect(c.request("POST", path, body(i)), 201, path);
    });
  }
}

void creates(const Target& target, json::object& out) {
  make_namespace(target, "creates");
  const std::string path = "/api/v1/namespaces/creates/configmaps";
  std::vector<double> one;
  {
    Connection c(target);
    for (int i = 0; i < 200; ++i) {
      const auto start = Clock::now();
      expect(c.request("POST", path, config_map(fmt::format("one-{}", i))), 201, "a create");
      one.push_back(ms_since(start));
    }
  }
  out["create_ms"] = quantile(one, 0.5);
  std::vector<double> runs;
  for (int run = 0; run < 3; ++run) {
    runs.push_back(
        calls_per_second(target, kClients, 3, [&](int thread, std::uint64_t n, Connection& c) {
          expect(c.request("POST", path, config_map(fmt::format("m-{}-{}-{}", run, thread, n))),
                 201, "a create");
        }));
  }
  out["creates_per_s"] = quantile(runs, 0.5);
  runs.clear();
  for (int run = 0; run < 3; ++run) {
    runs.push_back(calls_per_second(target, 16, 2, [&](int, std::uint64_t, Connection& c) {
      expect(c.request("GET", path + "/one-0"), 200, "a get");
    }));
  }
  out["gets_per_s"] = quantile(runs, 0.5);
}

double list_ms(const Target& target, const std::string& path, std::size_t& bytes) {
  Connection c(target);
  std::vector<double> times;
  for (int i = 0; i < 5; ++i) {
    const auto start = Clock::now();
    const auto answer = c.request("GET", path);
    times.push_back(ms_since(start));
    expect(answer, 200, "a list");
    bytes = answer.body.size();
  }
  return quantile(times, 0.5);
}

void lists(const Target& target, json::object& out) {
  make_namespace(target, "lists");
  const std::string path = "/api/v1/namespaces/lists/pods";
  make_many(target, kPods, path, [](int i) {
    return fmt::format(
        R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"p-{}","labels":{{"app":"bench"}}}},"spec":)"
        R"({{"schedulerName":"none","containers":[{{"name":"main","image":"busybox","command":["sleep",)"
        R"("60"],"resources":{{"requests":{{"cpu":"100m"}}}}}}]}}}})",
        i);
  });
  std::size_t bytes = 0;
  out["list_ms"] = list_ms(target, path, bytes);
  out["list_bytes"] = bytes;
}

// Milliseconds from a write to each watcher's reading of it. The object carries the time.
std::vector<double> watch_lags(const Target& target, const std::string& ns) {
  const std::string path = "/api/v1/namespaces/" + ns + "/configmaps";
  Connection writer(target);
  expect(writer.request("POST", path, config_map("clock")), 201, "a create");
  std::vector<std::unique_ptr<Connection>> watchers;
  std::vector<pollfd> ready;
  for (int i = 0; i < kWatchers; ++i) {
    watchers.push_back(std::make_unique<Connection>(target));
    watchers.back()->send_request(
        "GET", path + "?watch=1&fieldSelector=metadata.name%3Dclock&timeoutSeconds=60");
    ready.push_back({.fd = watchers.back()->fd(), .events = POLLIN, .revents = 0});
  }
  std::this_thread::sleep_for(1s);
  for (const auto& watcher : watchers) watcher->read_some();
  std::atomic<bool> done = false;
  std::jthread writes([&] {
    auto next = Clock::now();
    for (int i = 0; i < kEventsPerSecond * kWatchTime.count(); ++i) {
      std::this_thread::sleep_until(next +=
                                    std::chrono::microseconds(1'000'000 / kEventsPerSecond));
      const auto now = Clock::now().time_since_epoch().count();
      expect(writer.request("PATCH", path + "/clock",
                            fmt::format(R"({{"data":{{"k":"at-{}-"}}}})", now)),
             200, "a patch");
    }
    std::this_thread::sleep_for(1s);
    done = true;
  });
  std::vector<double> lags;
  while (!done) {
    if (poll(ready.data(), ready.size(), 50) <= 0) continue;
    for (std::size_t i = 0; i < ready.size(); ++i) {
      if (ready[i].revents == 0) continue;
      const std::string text = watchers[i]->read_some();
      const auto now = Clock::now().time_since_epoch().count();
      for (std::size_t at = text.find("\"at-"); at != std::string::npos;
           at = text.find("\"at-", at + 1)) {
        long long sent = 0;
        std::from_chars(text.data() + at + 4, text.data() + text.size(), sent);
        if (sent > 0) lags.push_back(static_cast<double>(now - sent) / 1e6);
      }
    }
  }
  return lags;
}

void watches(const Target& target, json::object& out) {
  make_namespace(target, "watches");
  const std::vector<double> lags = watch_lags(target, "watches");
  out["watch_lag_p50_ms"] = quantile(lags, 0.5);
  out["watch_lag_p99_ms"] = quantile(lags, 0.99);
  out["watch_events"] = lags.size();
}

// List time by number of objects; the caller measures memory at each step, when it reads the line.
void growth(const Target& target) {
  make_namespace(target, "growth");
  const std::string path = "/api/v1/namespaces/growth/configmaps";
  int have = 0;
  for (const int n : {1'000, 10'000, 100'000}) {
    const int from = have;
    make_many(target, n - have, path,
              [&](int i) { return config_map(fmt::format("g-{}", from + i)); });
    have = n;
    std::size_t bytes = 0;
    const double ms = list_ms(target, path, bytes);
    fmt::print("{}\n", json::serialize(json::object{{"objects", n}, {"list_ms", ms}}));
    std::fflush(stdout);
    std::string line(1, ' ');
    if (std::fread(line.data(), 1, 1, stdin) != 1) std::exit(1);
  }
}

int run(const Target& target, bool grow) {
  if (grow) {
    growth(target);
    return 0;
  }
  json::object out;
  creates(target, out);
  lists(target, out);
  watches(target, out);
  fmt::print("{}\n", json::serialize(out));
  return 0;
}

}  // namespace
}  // namespace skiff::bench

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: skiff_api_bench PORT TOKEN [growth]\n");
    return 2;
  }
  const skiff::bench::Target target{
      .port = static_cast<std::uint16_t>(std::atoi(argv[1])), .tls = true, .token = argv[2]};
  return skiff::bench::run(target, argc > 3);
}
