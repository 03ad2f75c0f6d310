// skiff_sim: runs simulated worlds and says which seeds fail.
//   skiff_sim [--workload NAME] [--seeds A..B | --seed N] [--verbose]
#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/workloads.h"
#include "sim/world.h"

namespace {

using skiff::sim::Options;
using skiff::sim::World;

struct Arguments {
  std::uint64_t first = 1;
  std::uint64_t last = 1000;
  bool verbose = false;
  std::string workload = {};  // empty: one after the other
};

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return n;
}

std::optional<Arguments> parse(const std::vector<std::string_view>& args) {
  Arguments out;
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (args[i] == "--verbose") {
      out.verbose = true;
      continue;
    }
    if (i + 1 == args.size()) return std::nullopt;
    const std::string_view value = args[++i];
    const std::size_t dots = value.find("..");
    const auto first = number(value.substr(0, dots));
    const auto last = dots == std::string_view::npos ? first : number(value.substr(dots + 2));
    if (args[i - 1] == "--workload") {
      out.workload = value;
    } else if ((args[i - 1] == "--seed" || args[i - 1] == "--seeds") && first && last) {
      out.first = *first;
      out.last = *last;
    } else {
      return std::nullopt;
    }
  }
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  const auto arguments = parse({argv + 1, argv + argc});
  if (!arguments) {
    fmt::print(stderr,
               "usage: skiff_sim [--workload NAME] [--seeds A..B | --seed N] [--verbose]\n");
    return 2;
  }
  const auto started = std::chrono::steady_clock::now();
  std::uint64_t failed = 0;
  std::uint64_t rounds = 0;
  std::uint64_t restarts = 0;
  for (std::uint64_t seed = arguments->first; seed <= arguments->last; ++seed) {
    auto workload = skiff::sim::make_workload(arguments->workload, seed);
    if (workload == nullptr) {
      fmt::print(stderr, "no workload is named {}\n", arguments->workload);
      return 2;
    }
    const Options options = Options::from_seed(seed);
    World::Log log;
    if (arguments->verbose) {
      fmt::print("workload={} {}\n", workload->name(), options.describe());
      log = [](std::string_view line) { fmt::print("{}\n", line); };
    }
    World world(options, *workload, log);
    const auto failure = world.run();
    rounds += world.rounds();
    restarts += world.restarts();
    if (!failure) continue;
    ++failed;
    fmt::print("FAILED workload={} {}\n  {}\n  replay: {} --workload {} --seed {} --verbose\n",
               workload->name(), options.describe(), *failure, argv[0], workload->name(), seed);
  }
  const double took =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  fmt::print("{} seeds, {} failed, {} rounds, {} restarts, {:.1f} s\n",
             arguments->last - arguments->first + 1, failed, rounds, restarts, took);
  return failed == 0 ? 0 : 1;
}
