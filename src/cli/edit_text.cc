#include "cli/edit_text.h"

#include <fmt/format.h>

#include "base/strings.h"
#include "base/yaml.h"

namespace skiff::cli {
namespace {

constexpr std::string_view kMark = "# skiff: ";

std::string comment(std::string_view problem) {
  std::string out = fmt::format(
      "{0}change the object below and save; lines that begin with '#' do not count.\n"
      "{0}leave it as it is, or empty, to change nothing.\n",
      kMark);
  if (problem.empty()) return out;
  for (const std::string_view line : split(problem, '\n')) {
    out += fmt::format("{}ERROR: {}\n", kMark, line);
  }
  return out;
}

}  // namespace

std::string with_problem(std::string_view text, std::string_view problem) {
  while (text.starts_with(kMark)) {
    const std::size_t end = text.find('\n');
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return comment(problem) + std::string(text);
}

std::string edit_buffer(const json::value& object, std::string_view problem) {
  return comment(problem) + yaml::serialize(object);
}

Result<json::value> read_edit(std::string_view text) {
  SKIFF_ASSIGN(json::value value, yaml::parse(text));
  if (!value.is_null() && !value.is_object()) {
    return fail(Code::kBadRequest, "this is not an object");
  }
  return value;
}

json::object merge_diff(const json::object& before, const json::object& after) {
  json::object patch;
  for (const auto& member : after) {
    const json::value* was = before.if_contains(member.key());
    if (was != nullptr && was->is_object() && member.value().is_object()) {
      json::object inner = merge_diff(was->get_object(), member.value().get_object());
      if (!inner.empty()) patch[member.key()] = std::move(inner);
    } else if (was == nullptr || *was != member.value()) {
      patch[member.key()] = member.value();
    }
  }
  for (const auto& member : before) {
    if (!after.contains(member.key())) patch[member.key()] = nullptr;
  }
  return patch;
}

void merge_into(json::value& target, const json::value& patch) {
  if (!patch.is_object()) {
    target = patch;
    return;
  }
  if (!target.is_object()) target = json::object();
  for (const auto& member : patch.get_object()) {
    if (member.value().is_null()) {
      target.get_object().erase(member.key());
    } else {
      merge_into(target.get_object()[member.key()], member.value());
    }
  }
}

}  // namespace skiff::cli
