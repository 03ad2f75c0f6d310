#include "api/cells.h"

#include "api/meta.h"

namespace skiff::api {

std::string age_cell(std::optional<Time> since, std::int64_t now_s) {
  if (!since) return "<unknown>";
  // Clocks differ a little; nothing is younger than now.
  return age(std::max(Duration::zero(), Duration(Time(std::chrono::seconds(now_s)) - *since)));
}

std::string age_cell(const json::value& object, std::int64_t now_s) {
  return age_cell(created_at(object), now_s);
}

std::string or_none(std::string_view text) {
  return text.empty() ? std::string("<none>") : std::string(text);
}

}  // namespace skiff::api
