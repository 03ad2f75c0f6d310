#include "cli/progress_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>

#include "api/meta.h"
#include "cli/printer.h"

namespace skiff::cli {
namespace {

constexpr std::size_t kMetricsShown = 4;
constexpr std::size_t kBarCells = 20;
constexpr std::int64_t kMostSeconds = 1LL << 31;

void add_part(std::string& out, std::string_view text) {
  if (!out.empty()) out += ", ";
  out += text;
}

void add_count(std::string& out, std::string_view name, const std::optional<std::int64_t>& of,
               const std::optional<std::int64_t>& total) {
  if (!of) return;
  add_part(out,
           total ? fmt::format("{} {}/{}", name, *of, *total) : fmt::format("{} {}", name, *of));
}

// Anybody may write a status; here it is one line on a terminal.
std::string one_line(std::string_view text) {
  std::string out = printable(text);
  std::ranges::replace_if(out, [](char c) { return c == '\n' || c == '\t'; }, ' ');
  return out;
}

// What a TrainJob has in upstream's words, in those of the other kinds.
json::object trainer_progress(const json::value& status) {
  json::object out;
  if (const auto percent = json::get_int(status, {"progressPercentage"})) out["percent"] = *percent;
  json::object metrics;
  for (const json::value& metric : json::get_array(status, {"metrics"})) {
    const std::string_view name = json::get_string(metric, {"name"});
    const std::string_view text = json::get_string(metric, {"value"});
    std::int64_t count = 0;
    const auto end = std::from_chars(text.data(), text.data() + text.size(), count);
    const bool counts =
        name == "step" || name == "totalSteps" || name == "epoch" || name == "totalEpochs";
    if (counts && end.ec == std::errc() && end.ptr == text.data() + text.size()) {
      out[name] = count;
    } else {
      metrics[name] = json::string(text);
    }
  }
  if (!metrics.empty()) out["metrics"] = std::move(metrics);
  const auto at = parse_time(json::get_string(status, {"lastUpdatedTime"}));
  const auto left = json::get_int(status, {"estimatedRemainingSeconds"});
  if (at) out["lastUpdateTime"] = rfc3339(*at);
  if (at && left && *left >= 0 && *left <= kMostSeconds) {
    out["estimatedCompletionTime"] = rfc3339(*at + std::chrono::seconds(*left));
  }
  return out;
}

json::value progress_of(const json::value& job) {
  const json::value* out = json::find(job, {"status", "progress"});
  if (out != nullptr && out->is_object()) return *out;
  const json::value* told = json::find(job, {"status", "trainerStatus"});
  return told != nullptr && told->is_object() ? trainer_progress(*told) : json::object();
}

}  // namespace

std::string progress_text(const json::value& job, Time now) {
  const json::value progress = progress_of(job);
  if (progress.get_object().empty()) return {};
  const auto number = [&](std::string_view field) { return json::get_int(progress, {field}); };
  std::string out;
  add_count(out, "epoch", number("epoch"), number("totalEpochs"));
  add_count(out, "step", number("step"), number("totalSteps"));
  if (const auto percent = number("percent")) {
    out += out.empty() ? fmt::format("{} %", *percent) : fmt::format(" ({} %)", *percent);
  }
  std::size_t shown = 0;
  for (const auto& [name, value] : json::get_object(progress, {"metrics"})) {
    if (!value.is_string() || shown++ == kMetricsShown) break;
    add_part(out, one_line(fmt::format("{} {}", std::string_view(name),
                                       json::view(value.get_string()))));
  }
  const bool over = json::find(job, {"status", "completionTime"}) != nullptr ||
                    api::condition_true(job, "Complete") || api::condition_true(job, "Failed");
  const auto end = parse_time(json::get_string(progress, {"estimatedCompletionTime"}));
  if (end && !over && number("percent").value_or(0) < 100) {
    add_part(out, *end > now ? fmt::format("about {} left", age(*end - now)) : "nearly done");
  }
  return out;
}

std::string progress_bar(const json::value& job, Time now, std::size_t width) {
  std::string text = progress_text(job, now);
  if (text.empty()) return {};
  if (const auto percent = json::get_int(job, {"status", "progress", "percent"})) {
    const auto done = static_cast<std::size_t>(std::clamp<std::int64_t>(*percent, 0, 100));
    const std::size_t cells = done * kBarCells / 100;
    text = "[" + std::string(cells, '#') + std::string(kBarCells - cells, '-') + "] " + text;
  }
  if (text.size() > width) text.resize(width);
  return text;
}

bool ProgressLines::due(const json::value& job, Time now) {
  const json::value progress = progress_of(job);
  if (progress.get_object().empty()) return false;
  std::string update(json::get_string(progress, {"lastUpdateTime"}));
  const std::int64_t tenth = json::get_int(progress, {"percent"}).value_or(0) / 10;
  const bool due = !told_ || (update != last_update_ &&
                              (tenth != tenth_ || now - *told_ >= std::chrono::minutes(1)));
  if (!due) return false;
  last_update_ = std::move(update);
  tenth_ = tenth;
  told_ = now;
  return true;
}

}  // namespace skiff::cli
