// make bench: the figures of docs/benchmarks.md, each beside what it depends on.
//
// Starts its own Skiff on loopback with a fresh data folder, and stops it again.
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/json.h"
#include "bench/load.h"

extern char** environ;

namespace skiff::bench {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr std::uint16_t kHttp = 17420;
constexpr std::uint16_t kHttps = 17443;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

class Server {
 public:
  Server(std::string binary, std::string data)
      : binary_(std::move(binary)), data_(std::move(data)) {}
  ~Server() { stop(); }

  // Milliseconds from exec to the first /readyz that says ok.
  double start() {
    const std::string https = fmt::format("127.0.0.1:{}", kHttps),
                      http = fmt::format("127.0.0.1:{}", kHttp);
    std::vector<std::string> words = {binary_, "up",     "--data", data_,          "--https",
                                      https,   "--http", http,     "--images=host"};
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&files, 2, (data_ + ".log").c_str(),
                                     O_WRONLY | O_CREAT | O_APPEND, 0600);
    const auto begin = Clock::now();
    if (posix_spawn(&pid_, binary_.c_str(), &files, nullptr, argv.data(), environ) != 0)
      std::exit(1);
    posix_spawn_file_actions_destroy(&files);
    while (!listening(kHttp)) {
      if (ms_since(begin) > 20'000) {
        fmt::print(stderr, "bench: Skiff does not start; see {}.log\n", data_);
        std::exit(1);
      }
      std::this_thread::sleep_for(200us);
    }
    Connection connection(kHttp);
    while (connection.request("GET", "/readyz").status != 200) std::this_thread::sleep_for(200us);
    return ms_since(begin);
  }

  void stop() {
    if (pid_ == 0) return;
    Connection connection(kHttp);
    connection.request("POST", "/skiff/v1/stop", "{}");
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

  int pid() const { return pid_; }

 private:
  std::string binary_, data_;
  pid_t pid_ = 0;
};

struct Row {
  std::string what;
  std::string figure;
  std::string goal;
  bool met = true;
};

std::vector<Row> rows;

void add(std::string what, std::string figure, std::string goal = "", bool met = true) {
  fmt::print("{:<58} {:>16}   {}\n", what, figure,
             goal.empty() ? "" : goal + (met ? "" : "  MISSED"));
  std::fflush(stdout);
  rows.push_back({std::move(what), std::move(figure), std::move(goal), met});
}

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

void pods(std::size_t n) {
  Connection c(kHttp);
  c.request("POST", "/api/v1/namespaces", R"({"metadata":{"name":"pods"}})");
  const auto start = Clock::now();
  for (std::size_t i = 0; i < n; ++i) {
    c.request(
        "POST", "/api/v1/namespaces/pods/pods",
        fmt::format(
            R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"p{}"}},"spec":{{"restartPolicy":)"
            R"("Never","containers":[{{"name":"c","image":"x","command":["/bin/true"]}}]}}}})",
            i));
  }
  const bool all = wait_count(c, "/api/v1/namespaces/pods/pods", R"("phase":"Succeeded")", n, 120);
  const double seconds = ms_since(start) / 1000;
  add(fmt::format("pods/s: {} pods of /bin/true, own namespaces, to Succeeded", n),
      all ? fmt::format("{:.0f}/s", static_cast<double>(n) / seconds) : "not all ended", "50/s",
      all && static_cast<double>(n) / seconds >= 50);
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

void write_json(const std::string& path) {
  json::array out;
  for (const Row& row : rows) {
    out.push_back(json::object{
        {"what", row.what}, {"figure", row.figure}, {"goal", row.goal}, {"met", row.met}});
  }
  std::ofstream(path) << json::pretty(out) << "\n";
}

int run(const std::string& binary, const std::string& folder) {
  std::filesystem::create_directories(folder);
  const std::string data = folder + "/data";
  const double sync = sync_ms(folder);
  add("one write + fdatasync here (median of 51)", fmt::format("{:.2f} ms", sync));
  start_and_idle(binary, data);
  std::filesystem::remove_all(data);
  Server server(binary, data);
  server.start();
  creates(sync);
  pods(500);
  jobs(100);
  add("memory after all this (RSS)", fmt::format("{:.1f} MB", rss_mb(server.pid())));
  server.stop();
  write_json(folder + "/bench.json");
  return 0;
}

}  // namespace
}  // namespace skiff::bench

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: skiff_bench SKIFF-BINARY WORK-FOLDER\n");
    return 2;
  }
  return skiff::bench::run(argv[1], argv[2]);
}
