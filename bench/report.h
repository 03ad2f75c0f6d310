// The figures of a run: printed as they come, kept for bench.json.
#pragma once

#include <string>
#include <vector>

namespace skiff::bench {

// One figure. `goal` empty: none was set, the figure stands beside one that has.
void add(std::string what, std::string figure, std::string goal = "", bool met = true);
void write_json(const std::string& path);
bool all_met();

// Of sorted or unsorted values, at least one; `share` 0.5 is the median.
double quantile(std::vector<double> values, double share);
double median(std::vector<double> values);

}  // namespace skiff::bench
