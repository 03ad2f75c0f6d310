#include "client/remote/managers.h"

namespace skiff::client {
namespace {

constexpr std::size_t kNone = std::string_view::npos;

// Behind the string that begins at `at`.
std::size_t string_end(std::string_view text, std::size_t at) {
  for (++at; at < text.size(); ++at) {
    if (text[at] == '\\') {
      ++at;
    } else if (text[at] == '"') {
      return at + 1;
    }
  }
  return kNone;
}

// Behind the array or object that begins at `at`.
std::size_t value_end(std::string_view text, std::size_t at) {
  int open = 0;
  while (at < text.size()) {
    const char c = text[at];
    if (c == '"') {
      at = string_end(text, at);
      continue;
    }
    if (c == '{' || c == '[') ++open;
    if (c == '}' || c == ']') --open;
    ++at;
    if (open == 0) return at;
  }
  return kNone;
}

// Where the member "managedFields" of the metadata begins.
std::size_t find_managers(std::string_view text, int level) {
  int open = 0;
  bool in_metadata = false;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '{' || c == '[') ++open;
    if (c == '}' || c == ']') {
      if (in_metadata && open == level + 1) return kNone;
      --open;
    }
    if (c != '"') {
      ++at;
      continue;
    }
    const std::size_t end = string_end(text, at);
    if (end == kNone) return kNone;
    const std::string_view word = text.substr(at, end - at);
    if (text.substr(end, 2) == ":{" && open == level) in_metadata = word == "\"metadata\"";
    if (text.substr(end, 2) == ":[" && open == level + 1 && in_metadata &&
        word == "\"managedFields\"") {
      return at;
    }
    at = end;
  }
  return kNone;
}

}  // namespace

std::string without_managers(std::string_view text, int level) {
  std::size_t begin = find_managers(text, level);
  if (begin == kNone) return std::string(text);
  std::size_t end = value_end(text, text.find('[', begin));
  if (end >= text.size()) return std::string(text);
  // With the comma that separates it from its neighbour.
  if (text[end] == ',') {
    ++end;
  } else if (text[begin - 1] == ',') {
    --begin;
  }
  std::string out;
  out.reserve(text.size() - (end - begin));
  out += text.substr(0, begin);
  out += text.substr(end);
  return out;
}

}  // namespace skiff::client
