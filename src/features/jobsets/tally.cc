#include "features/jobsets/tally.h"

#include <fmt/format.h>

#include <iterator>
#include <string_view>

#include "api/meta.h"

namespace skiff::jobsets {
namespace {

bool turned_true(const json::value& before, const json::value& after, std::string_view type) {
  return !api::condition_true(before, type) && api::condition_true(after, type);
}

}  // namespace

void Tally::changed(const json::value* before, const json::value* after) {
  if (before == nullptr) return;
  const std::pair set(std::string(api::ns(*before)), std::string(api::name(*before)));
  if (after == nullptr) {
    sets_.erase(set);
    return;
  }
  if (turned_true(*before, *after, "Failed")) ++sets_[set].failed;
  if (turned_true(*before, *after, "Completed")) ++sets_[set].completed;
}

std::string Tally::text() const {
  struct Family {
    std::string_view name = {};
    std::string_view help = {};
    std::uint64_t Ends::* count = nullptr;
  };
  constexpr Family kFamilies[] = {
      {"jobset_failed_total", "JobSets that have failed.", &Ends::failed},
      {"jobset_completed_total", "JobSets that have completed.", &Ends::completed}};
  std::string text;
  for (const Family& family : kFamilies) {
    const auto out = std::back_inserter(text);
    fmt::format_to(out, "# HELP {0} {1}\n# TYPE {0} counter\n", family.name, family.help);
    for (const auto& [set, ends] : sets_) {
      if (ends.*family.count == 0) continue;
      fmt::format_to(out, "{}{{jobset_name=\"{}\",namespace=\"{}\"}} {}\n", family.name, set.second,
                     set.first, ends.*family.count);
    }
  }
  return text;
}

}  // namespace skiff::jobsets
