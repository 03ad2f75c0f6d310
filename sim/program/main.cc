// skiff_sim: runs simulated worlds and says which seeds fail. `skiff_sim --help` tells the rest.
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

constexpr std::string_view kHelp =
    R"(Runs the whole platform in one thread and virtual time, with faults, once for each seed.

usage: skiff_sim [--workload NAME] [--seeds A..B | --seed N] [--faults NAME,...] [--fail-fast]
                 [--verbose]

  --seeds A..B     all of these, both ends included; without it 1..1000
  --seed N         only this one
  --workload NAME  what runs in it: {}
                   without it the seed chooses
  --faults LIST    only these of the faults that the seed chose, or "none"; to find out which one
                   a failure needs. The run is another one than with all of them.
                   {}
  --fail-fast      end with the first seed that fails
  --verbose        tell what happens: each fault, each write with its answer, and, when the run
                   fails, every object at its end
  --list           the workloads, faults and checkers, one on each line

A seed decides everything: how many nodes there are, which faults strike and when, what people and
pods do, when the server writes to disk. The same seed gives the same run, so the line "replay:" of
a failure is all that is needed to see it again.

A run goes through two times. While faults last, the checkers look at all that people could see
after each change: no orphans, one pod for each place, gangs whole, nodes not overfull, revisions
that grow, watches that tell what lists tell, nothing lost that was promised, no more pods than were
asked for. Then the faults stop, and within a day everything must come to its end or to what its
spec asks for; nothing may loop without time passing. Apps are updated once more then, and while
nothing but controllers takes pods away, as many must stay ready as the update promises.

Where to look when a seed fails: run the replay line, read upwards from the end for the first write
that should not have been made, and ask what its author could have seen at that time. A controller
acts through one submit with preconditions (src/control/apply.h); what it saw may be old.

exit code: 0 all is well, 1 some seed failed, 2 the command line is wrong
)";

struct Arguments {
  std::uint64_t first = 1;
  std::uint64_t last = 1000;
  bool verbose = false;
  bool help = false;
  bool list = false;
  bool fail_fast = false;
  std::string workload = {};  // empty: the seed chooses
  std::optional<std::string> faults = {};
};

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return n;
}

bool parse_seeds(std::string_view text, Arguments& out) {
  const std::size_t dots = text.find("..");
  const auto first = number(text.substr(0, dots));
  const auto last = dots == std::string_view::npos ? first : number(text.substr(dots + 2));
  if (!first || !last || *last < *first) return false;
  out.first = *first;
  out.last = *last;
  return true;
}

// Null: the word is none of those that stand alone.
bool* flag_of(std::string_view name, Arguments& out) {
  if (name == "--verbose") return &out.verbose;
  if (name == "--list") return &out.list;
  if (name == "--fail-fast") return &out.fail_fast;
  return name == "--help" || name == "-h" ? &out.help : nullptr;
}

std::optional<Arguments> parse(const std::vector<std::string_view>& args) {
  Arguments out;
  for (std::size_t i = 0; i < args.size(); ++i) {
    const std::string_view name = args[i];
    if (bool* flag = flag_of(name, out); flag != nullptr) {
      *flag = true;
      continue;
    }
    if (i + 1 == args.size()) return std::nullopt;
    const std::string_view value = args[++i];
    if (name == "--workload") {
      out.workload = value;
    } else if (name == "--faults") {
      out.faults = value;
    } else if ((name != "--seed" && name != "--seeds") || !parse_seeds(value, out)) {
      return std::nullopt;
    }
  }
  return out;
}

std::vector<std::string_view> fault_names() {
  std::vector<std::string_view> out;
  for (const skiff::sim::Fault* fault : skiff::sim::all_faults()) out.push_back(fault->name);
  return out;
}

std::string help() {
  return fmt::format(fmt::runtime(kHelp), fmt::join(skiff::sim::workload_names(), ", "),
                     fmt::join(fault_names(), ", "));
}

void print_list() {
  for (const std::string_view name : skiff::sim::workload_names())
    fmt::print("workload {}\n", name);
  for (const std::string_view name : fault_names()) fmt::print("fault {}\n", name);
  for (const auto& checker : skiff::sim::all_checkers()) {
    fmt::print("checker {}\n", checker->name());
  }
}

Options options_for(std::uint64_t seed, const Arguments& arguments) {
  Options options = Options::from_seed(seed);
  if (arguments.faults) {
    const std::string allowed = "," + *arguments.faults + ",";
    std::erase_if(options.faults, [&](const skiff::sim::Fault* fault) {
      return allowed.find(fmt::format(",{},", fault->name)) == std::string::npos;
    });
  }
  return options;
}

struct Totals {
  std::uint64_t seeds = 0;
  std::uint64_t failed = 0;
  std::uint64_t rounds = 0;
  std::uint64_t restarts = 0;
};

// False: there is no such workload.
bool run(std::uint64_t seed, const Arguments& arguments, std::string_view program, Totals& totals) {
  const auto workload = skiff::sim::make_workload(arguments.workload, seed);
  if (workload == nullptr) return false;
  const Options options = options_for(seed, arguments);
  World::Log log;
  if (arguments.verbose) {
    fmt::print("workload={} {}\n", workload->name(), options.describe());
    log = [](std::string_view line) { fmt::print("{}\n", line); };
  }
  World world(options, *workload, log);
  const auto failure = world.run();
  ++totals.seeds;
  totals.rounds += world.rounds();
  totals.restarts += world.restarts();
  if (!failure) return true;
  ++totals.failed;
  const std::string faults = arguments.faults ? " --faults " + *arguments.faults : "";
  fmt::print("FAILED workload={} {}\n  {}\n  replay: {} --workload {} --seed {}{} --verbose\n",
             workload->name(), options.describe(), *failure, program, workload->name(), seed,
             faults);
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const auto arguments = parse({argv + 1, argv + argc});
  if (!arguments) {
    fmt::print(stderr, "skiff_sim: the command line is wrong\n\n{}", help());
    return 2;
  }
  if (arguments->help) {
    fmt::print("{}", help());
    return 0;
  }
  if (arguments->list) {
    print_list();
    return 0;
  }
  const auto started = std::chrono::steady_clock::now();
  Totals totals;
  for (std::uint64_t seed = arguments->first; seed <= arguments->last; ++seed) {
    if (arguments->fail_fast && totals.failed > 0) break;
    if (run(seed, *arguments, argv[0], totals)) continue;
    fmt::print(stderr, "skiff_sim: no workload is named {}; there are: {}\n", arguments->workload,
               fmt::join(skiff::sim::workload_names(), ", "));
    return 2;
  }
  const double took =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  fmt::print("{} seeds, {} failed, {} rounds, {} restarts, {:.1f} s\n", totals.seeds, totals.failed,
             totals.rounds, totals.restarts, took);
  return totals.failed == 0 ? 0 : 1;
}
