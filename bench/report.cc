#include "bench/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "base/json.h"

namespace skiff::bench {
namespace {

struct Row {
  std::string what;
  std::string figure;
  std::string goal;
  bool met = true;
};

std::vector<Row> rows;

}  // namespace

void add(std::string what, std::string figure, std::string goal, bool met) {
  fmt::print("{:<66} {:>16}   {}\n", what, figure,
             goal.empty() ? "" : goal + (met ? "" : "  MISSED"));
  std::fflush(stdout);
  rows.push_back({std::move(what), std::move(figure), std::move(goal), met});
}

void write_json(const std::string& path) {
  json::array out;
  for (const Row& row : rows) {
    out.push_back(json::object{
        {"what", row.what}, {"figure", row.figure}, {"goal", row.goal}, {"met", row.met}});
  }
  std::ofstream(path) << json::pretty(out) << "\n";
}

bool all_met() {
  return std::ranges::all_of(rows, [](const Row& row) { return row.met; });
}

double quantile(std::vector<double> values, double share) {
  std::ranges::sort(values);
  const auto at = static_cast<std::size_t>(share * static_cast<double>(values.size()));
  return values[std::min(at, values.size() - 1)];
}

double median(std::vector<double> values) { return quantile(std::move(values), 0.5); }

}  // namespace skiff::bench
