// How many synced commits a second many writers get, beside what one sync of this disk costs.
// Each writer waits until its commit is visible before the next, as a client waits for its answer.
//
//   skiff_store_bench [directory]
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <semaphore>
#include <thread>
#include <vector>

#include "base/check.h"
#include "store/store.h"

namespace skiff::store {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto kTime = 3s;
constexpr int kWriters = 64;
constexpr std::size_t kObjectBytes = 3'000;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Syncs a second of a file that grows by a page each time, as a log does.
double measure_syncs(const std::string& directory) {
  const std::string path = directory + "/syncs";
  const int file = open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
  SKIFF_CHECK(file >= 0, "the directory can be written to");
  const std::vector<char> page(4096, 'x');
  const auto start = Clock::now();
  int count = 0;
  for (; Clock::now() - start < kTime / 2; ++count) {
    SKIFF_CHECK(write(file, page.data(), page.size()) == 4096, "there is room on the disk");
    SKIFF_CHECK(fdatasync(file) == 0, "the disk syncs");
  }
  const double rate = count / seconds_since(start);
  close(file);
  return rate;
}

struct Measured {
  double commits = 0;  // a second
  double syncs = 0;
  double median_ms = 0;
  double p99_ms = 0;
};

void write_until(const std::atomic<bool>& stop, Store& store, int writer,
                 std::vector<double>& latencies, Sync sync) {
  const json::value value = json::object{{"metadata", json::object{{"name", "x"}}},
                                         {"data", std::string(kObjectBytes, 'x')}};
  // Shared, because release() may still be at work when the last wait is over.
  const auto visible = std::make_shared<std::binary_semaphore>(0);
  for (int i = 0; !stop; ++i) {
    const auto start = Clock::now();
    const Key key{"pods", fmt::format("ns-{}", writer), fmt::format("pod-{}", i % 100)};
    const auto done = store.commit({{.key = key, .value = value}}, sync);
    SKIFF_CHECK(done.has_value(), done ? "" : done.error().message);
    store.when_visible(done->revision, [visible] { visible->release(); });
    visible->acquire();
    latencies.push_back(seconds_since(start) * 1e3);
  }
}

Measured measure_commits(const std::string& directory, int writers, Sync sync) {
  auto journal = open_sqlite_journal(fmt::format("{}/{}.db", directory, writers));
  SKIFF_CHECK(journal.has_value(), "a new store opens");
  const auto store = std::move(*Store::open(std::move(*journal), Store::Writer::kThread));
  const std::uint64_t syncs_before = store->stats().syncs;
  std::vector<std::vector<double>> latencies(static_cast<std::size_t>(writers));
  std::atomic<bool> stop = false;
  const auto start = Clock::now();
  {
    std::vector<std::jthread> threads;
    for (int w = 0; w < writers; ++w) {
      threads.emplace_back(
          [&, w] { write_until(stop, *store, w, latencies[static_cast<std::size_t>(w)], sync); });
    }
    std::this_thread::sleep_for(kTime);
    stop = true;
  }
  const double took = seconds_since(start);
  std::vector<double> all;
  for (const auto& part : latencies) all.insert(all.end(), part.begin(), part.end());
  std::ranges::sort(all);
  return {.commits = static_cast<double>(all.size()) / took,
          .syncs = static_cast<double>(store->stats().syncs - syncs_before) / took,
          .median_ms = all[all.size() / 2],
          .p99_ms = all[all.size() * 99 / 100]};
}

double measure_opening_ms(const std::string& directory) {
  const std::string path = directory + "/opening.db";
  {
    const auto store =
        std::move(*Store::open(std::move(*open_sqlite_journal(path)), Store::Writer::kManual));
    for (int i = 0; i < 10'000; ++i) {
      const json::value value = json::object{{"data", std::string(kObjectBytes, 'x')}};
      (void)store->commit({{.key = {"pods", "default", std::to_string(i)}, .value = value}},
                          Sync::kSynced);
    }
  }
  const auto start = Clock::now();
  const auto store = Store::open(std::move(*open_sqlite_journal(path)), Store::Writer::kManual);
  SKIFF_CHECK((*store)->stats().objects == 10'000, "all of them are back");
  return seconds_since(start) * 1e3;
}

void run(const std::string& directory) {
  fmt::print("disk: {:.0f} fdatasync/s\n", measure_syncs(directory));
  struct Case {
    const char* name;
    int writers;
    Sync sync;
  };
  for (const Case& c : {Case{"synced", kWriters, Sync::kSynced}, Case{"synced", 1, Sync::kSynced},
                        Case{"lazy", kWriters, Sync::kLazy}}) {
    const Measured m = measure_commits(directory, c.writers, c.sync);
    fmt::print(
        "store, {} {} writer(s): {:.0f} commits/s in {:.0f} syncs/s, median {:.2f} ms, "
        "99% {:.2f} ms\n",
        c.writers, c.name, m.commits, m.syncs, m.median_ms, m.p99_ms);
  }
  fmt::print("opening 10,000 objects of {} bytes: {:.0f} ms\n", kObjectBytes,
             measure_opening_ms(directory));
}

}  // namespace
}  // namespace skiff::store

int main(int argc, char** argv) {
  std::string directory =
      (std::filesystem::path(argc > 1 ? argv[1] : ".") / "skiff_bench_XXXXXX").string();
  SKIFF_CHECK(mkdtemp(directory.data()) != nullptr, "the directory can be written to");
  skiff::store::run(directory);
  std::filesystem::remove_all(directory);
}
