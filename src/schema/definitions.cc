#include "schema/definitions.h"

#include <fmt/format.h>

#include "base/strings.h"

namespace skiff::schema {
namespace {

// Types nest only as deep as lists of maps do; more is no definition of ours.
constexpr int kTypeDepth = 8;

std::unexpected<Error> bad_definition(std::string_view what, std::string_view line) {
  return fail(Code::kInternal, fmt::format("definition: {} in '{}'", what, line));
}

Result<Schema> read_type(std::string_view text, int depth);

Result<SchemaPtr> read_inner(std::string_view text, char close, int depth) {
  if (text.size() < 3 || text.back() != close) return bad_definition("unclosed type", text);
  SKIFF_ASSIGN(Schema inner, read_type(text.substr(1, text.size() - 2), depth + 1));
  return std::make_shared<const Schema>(std::move(inner));
}

Result<Schema> read_type(std::string_view text, int depth) {
  Schema out{.builtin = true};
  if (text.empty() || depth > kTypeDepth) return bad_definition("bad type", text);
  if (text[0] == '@') {
    out.ref = text.substr(1);
  } else if (text[0] == '[') {
    out.type = Type::kArray;
    SKIFF_ASSIGN(out.items, read_inner(text, ']', depth));
  } else if (text[0] == '{') {
    out.type = Type::kObject;
    SKIFF_ASSIGN(out.additional, read_inner(text, '}', depth));
  } else if (text == "int-or-string") {
    out.int_or_string = true;
    out.format = text;
  } else if (text == "quantity") {
    out.format = text;
  } else if (text == "object") {
    out.type = Type::kObject;
  } else {
    if (text.size() > 2 && text[1] == ':') out.format = text.substr(2);
    if (text.size() > 1 && text[1] != ':') return bad_definition("unknown type", text);
    switch (text[0]) {
      case 's':
        out.type = Type::kString;
        break;
      case 'i':
        out.type = Type::kInteger;
        break;
      case 'n':
        out.type = Type::kNumber;
        break;
      case 'b':
        out.type = Type::kBoolean;
        break;
      case 'o':
        out.type = Type::kObject;
        out.preserve_unknown = true;
        break;
      case 'x':
        out.preserve_unknown = true;
        break;
      default:
        return bad_definition("unknown type", text);
    }
  }
  return out;
}

Result<void> read_keyword(std::string_view word, Schema& out) {
  const std::size_t at = word.find('=');
  if (at == std::string_view::npos) return bad_definition("unknown keyword", word);
  const std::string_view key = word.substr(0, at), value = word.substr(at + 1);
  if (key == "default") {
    SKIFF_ASSIGN(out.fallback, json::parse(value));
  } else if (key == "lt") {
    out.list_type = value == "map"   ? ListType::kMap
                    : value == "set" ? ListType::kSet
                                     : ListType::kAtomic;
  } else if (key == "lk") {
    for (const std::string_view k : split(value, ',')) out.list_map_keys.emplace_back(k);
  } else if (key == "mt") {
    out.atomic_map = value == "atomic";
  } else if (key == "pk") {
    out.patch_merge_key = value;
  } else if (key == "ps") {
    out.patch_strategy = value;
  } else {
    return bad_definition("unknown keyword", word);
  }
  return {};
}

Result<Schema> read_line(const std::vector<std::string_view>& words) {
  if (words.size() < 2) return bad_definition("type missing", words[0]);
  SKIFF_ASSIGN(Schema out, read_type(words[1], 0));
  for (std::size_t i = 2; i < words.size(); ++i) SKIFF_TRY(read_keyword(words[i], out));
  return out;
}

}  // namespace

std::vector<Definition> split_definitions(std::string_view text) {
  std::vector<Definition> out;
  std::size_t at = 0;
  while (at < text.size()) {
    std::size_t end = std::min(text.find('\n', at), text.size());
    const std::size_t start = at;
    const std::string_view head = text.substr(start, end - start);
    while (end + 1 < text.size() && text[end + 1] == ' ') {
      end = std::min(text.find('\n', end + 1), text.size());
    }
    if (!head.empty() && head[0] != '#') {
      out.push_back(
          {.name = head.substr(0, head.find(' ')), .text = text.substr(start, end - start)});
    }
    at = end + 1;
  }
  return out;
}

Result<Schema> read_definition(std::string_view text) {
  Schema out;
  bool first = true;
  for (const std::string_view line : split(text, '\n')) {
    if (first) {
      SKIFF_ASSIGN(out, read_line(split(line, ' ')));
      first = false;
      continue;
    }
    if (!line.starts_with(' ')) return bad_definition("a property must be indented", line);
    std::vector<std::string_view> words = split(line.substr(1), ' ');
    const std::size_t marks = words[0].find_first_of("!*~?");
    const std::string_view marked = marks == words[0].npos ? "" : words[0].substr(marks);
    words[0] = words[0].substr(0, marks);
    if (marked.contains('!')) out.required.emplace_back(words[0]);
    SKIFF_ASSIGN(Schema property, read_line(words));
    property.pointer = marked.contains('*');
    property.always = marked.contains('~');
    property.omit_zero = marked.contains('?');
    out.add_property(words[0]) = std::move(property);
  }
  return out;
}

}  // namespace skiff::schema
