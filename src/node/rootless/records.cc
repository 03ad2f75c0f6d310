#include "node/rootless/records.h"

#include <charconv>

#include "base/json.h"
#include "base/strings.h"

namespace skiff::node {
namespace {

json::object record_json(const ProcessMark& process) {
  return {{"pid", process.pid}, {"started", process.started}};
}

std::optional<ProcessMark> mark_at(const json::value& record, std::string_view field) {
  const auto pid = json::get_int(record, {field, "pid"});
  if (!pid || *pid <= 1) return {};
  return ProcessMark{.pid = static_cast<pid_t>(*pid),
                     .started = std::string(json::get_string(record, {field, "started"}))};
}

std::optional<unsigned> number(std::string_view text) {
  unsigned out = 0;
  const auto end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, out);
  if (read.ec != std::errc() || read.ptr != end) return {};
  return out;
}

}  // namespace

std::string to_text(const RootlessRecord& record) {
  return json::serialize(json::object{{"boot", record.boot},
                                      {"holder", record_json(record.holder)},
                                      {"network", record_json(record.network)},
                                      {"program", record.program}});
}

std::optional<RootlessRecord> parse_record(std::string_view text) {
  const auto parsed = json::parse(text);
  if (!parsed) return {};
  const auto holder = mark_at(*parsed, "holder");
  const auto network = mark_at(*parsed, "network");
  if (!holder || !network) return {};
  return RootlessRecord{.boot = std::string(json::get_string(*parsed, {"boot"})),
                        .holder = *holder,
                        .network = *network,
                        .program = std::string(json::get_string(*parsed, {"program"}))};
}

std::optional<std::string> parse_start_time(std::string_view stat) {
  // pid (name) state ...: the name may hold anything, the start is the 20th word after it.
  const std::size_t name_end = stat.rfind(')');
  if (name_end == std::string_view::npos) return {};
  const std::vector<std::string_view> words = split(trim(stat.substr(name_end + 1)), ' ');
  if (words.size() < 20 || words[0] == "Z" || words[0] == "X") return {};
  return std::string(words[19]);
}

std::optional<IdRange> parse_id_range(std::string_view text, std::string_view name, uid_t uid) {
  for (const std::string_view line : split(text, '\n')) {
    const std::vector<std::string_view> words = split(trim(line), ':');
    if (words.size() != 3) continue;
    const bool ours = (!name.empty() && words[0] == name) || number(words[0]) == uid;
    const auto first = number(words[1]), count = number(words[2]);
    if (ours && first && count && *count > 0) return IdRange{*first, *count};
  }
  return {};
}

bool only_loopback_servers(std::string_view resolv_conf) {
  bool any = false;
  for (const std::string_view line : split(resolv_conf, '\n')) {
    const std::string_view text = trim(line);
    if (!text.starts_with("nameserver")) continue;
    const std::string_view server = trim(text.substr(std::string_view("nameserver").size()));
    if (!server.starts_with("127.") && server != "::1") return false;
    any = true;
  }
  return any;
}

}  // namespace skiff::node
