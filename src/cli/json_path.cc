#include "cli/json_path.h"

#include <fmt/format.h>

#include <charconv>
#include <functional>
#include <optional>

#include "base/strings.h"

namespace skiff::cli {
namespace {

using Values = std::vector<const json::value*>;

struct Filter;

struct Step {
  // kFields and kIndices hold one or more: ['a','b'], [0,2].
  enum class Kind { kFields, kIndices, kSlice, kAll, kDescend, kFilter } kind = Kind::kFields;
  std::vector<std::string> names = {};
  std::vector<std::int64_t> indices = {};
  std::optional<std::int64_t> from = {}, to = {};
  std::int64_t stride = 1;
  std::shared_ptr<const Filter> filter = {};
};
using Path = std::vector<Step>;

struct Filter {
  Path left = {};
  std::string operation = {};  // empty: the left side exists
  Path right = {};
  std::optional<json::value> literal = {};
};

Values walk(const Path& path, const json::value& root);

int compare(const json::value& a, const json::value& b) {
  const auto number = [](const json::value& v) -> std::optional<double> {
    if (v.is_int64()) return static_cast<double>(v.get_int64());
    if (v.is_uint64()) return static_cast<double>(v.get_uint64());
    if (v.is_double()) return v.get_double();
    return {};
  };
  if (const auto x = number(a), y = number(b); x && y) return *x < *y ? -1 : *x > *y;
  return plain_text(a).compare(plain_text(b));
}

bool holds(const Filter& filter, const json::value& at) {
  const Values left = walk(filter.left, at);
  if (filter.operation.empty()) return !left.empty();
  Values right;
  if (!filter.literal) right = walk(filter.right, at);
  const json::value* other = filter.literal  ? &*filter.literal
                             : right.empty() ? nullptr
                                             : right.front();
  if (left.empty() || other == nullptr) return false;
  const int order = compare(*left.front(), *other);
  if (filter.operation == "==") return order == 0;
  if (filter.operation == "!=") return order != 0;
  if (filter.operation == "<") return order < 0;
  if (filter.operation == "<=") return order <= 0;
  return filter.operation == ">" ? order > 0 : order >= 0;
}

void descend(const std::string& name, const json::value& at, Values& out) {
  if (const json::object* object = at.if_object()) {
    for (const auto& member : *object) {
      if (name == "*" || member.key() == name) out.push_back(&member.value());
      descend(name, member.value(), out);
    }
  } else if (const json::array* array = at.if_array()) {
    for (const json::value& item : *array) {
      if (name == "*") out.push_back(&item);
      descend(name, item, out);
    }
  }
}

void slice(const Step& step, const json::array& array, Values& out) {
  const auto size = static_cast<std::int64_t>(array.size());
  const auto bound = [&](std::optional<std::int64_t> at, std::int64_t otherwise) {
    const std::int64_t n = at.value_or(otherwise);
    return std::clamp<std::int64_t>(n < 0 ? n + size : n, 0, size);
  };
  for (std::int64_t i = bound(step.from, 0); i < bound(step.to, size); i += step.stride) {
    out.push_back(&array[static_cast<std::size_t>(i)]);
  }
}

void take(const Step& step, const json::value& at, Values& out) {
  const json::object* object = at.if_object();
  const json::array* array = at.if_array();
  switch (step.kind) {
    case Step::Kind::kFields:
      for (const std::string& name : step.names) {
        const json::value* found = object == nullptr ? nullptr : object->if_contains(name);
        if (found != nullptr) out.push_back(found);
      }
      return;
    case Step::Kind::kIndices:
      for (std::int64_t i : step.indices) {
        if (array == nullptr) return;
        if (i < 0) i += static_cast<std::int64_t>(array->size());
        const auto n = static_cast<std::size_t>(i);
        if (i >= 0 && n < array->size()) out.push_back(&(*array)[n]);
      }
      return;
    case Step::Kind::kSlice:
      if (array != nullptr) slice(step, *array, out);
      return;
    case Step::Kind::kAll:
      if (array != nullptr) {
        for (const json::value& item : *array) out.push_back(&item);
      } else if (object != nullptr) {
        for (const auto& member : *object) out.push_back(&member.value());
      }
      return;
    case Step::Kind::kDescend:
      return descend(step.names.front(), at, out);
    case Step::Kind::kFilter:
      if (array == nullptr) return;
      for (const json::value& item : *array) {
        if (holds(*step.filter, item)) out.push_back(&item);
      }
      return;
  }
}

Values walk(const Path& path, const json::value& root) {
  Values at{&root};
  for (const Step& step : path) {
    Values next;
    for (const json::value* value : at) take(step, *value, next);
    at = std::move(next);
  }
  return at;
}

// One action between braces, or the inside of a filter.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  bool done() const { return at_ >= text_.size(); }
  std::string_view rest() const { return text_.substr(at_); }
  void skip_spaces() {
    while (!done() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }
  bool accept(std::string_view word) {
    if (!rest().starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  Result<Path> path() {
    Path out;
    if (!accept("$")) accept("@");
    while (!done()) {
      if (accept("..")) {
        SKIFF_ASSIGN(std::string name, field());
        out.push_back({.kind = Step::Kind::kDescend, .names = {std::move(name)}});
      } else if (rest().starts_with(".[")) {
        ++at_;
      } else if (accept(".")) {
        if (done()) break;  // {.} is the root itself
        SKIFF_ASSIGN(std::string name, field());
        if (name == "*") {
          out.push_back({.kind = Step::Kind::kAll});
        } else {
          out.push_back({.names = {std::move(name)}});
        }
      } else if (accept("[")) {
        SKIFF_ASSIGN(Step step, bracket());
        out.push_back(std::move(step));
      } else {
        break;
      }
    }
    return out;
  }

  // "..." or '...' with \n, \t, \\ and the quote itself.
  Result<std::string> quoted() {
    const char quote = text_[at_++];
    std::string out;
    while (!done() && text_[at_] != quote) {
      char c = text_[at_++];
      if (c == '\\' && !done()) {
        const char escaped = text_[at_++];
        c = escaped == 'n' ? '\n' : escaped == 't' ? '\t' : escaped;
      }
      out += c;
    }
    if (done()) return bad("a quote is not closed");
    ++at_;
    return out;
  }

  std::unexpected<Error> bad(std::string_view why) const {
    return fail(Code::kBadRequest, fmt::format("jsonpath \"{}\": {}", text_, why));
  }

 private:
  Result<std::string> field() {
    std::string out;
    while (!done() && !std::string_view(".[] \t()=!<>,|").contains(text_[at_])) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;  // a\.b is one field
      out += text_[at_++];
    }
    if (out.empty()) return bad("a field name is missing");
    return out;
  }

  // Up to the bracket that closes, quotes and inner brackets respected.
  Result<std::string_view> inside() {
    const std::size_t begin = at_;
    int depth = 1;
    char quote = 0;
    for (; !done(); ++at_) {
      const char c = text_[at_];
      if (quote != 0) {
        if (c == '\\') {
          ++at_;
        } else if (c == quote) {
          quote = 0;
        }
      } else if (c == '"' || c == '\'') {
        quote = c;
      } else if (c == '[') {
        ++depth;
      } else if (c == ']' && --depth == 0) {
        return text_.substr(begin, at_++ - begin);
      }
    }
    return bad("a bracket is not closed");
  }

  Result<Step> bracket() {
    SKIFF_ASSIGN(const std::string_view whole, inside());
    const std::string_view text = trim(whole);
    if (text == "*") return Step{.kind = Step::Kind::kAll};
    if (text.starts_with("?(") && text.ends_with(")")) {
      return filter(text.substr(2, text.size() - 3));
    }
    if (text.starts_with('\'') || text.starts_with('"')) return names(text);
    if (text.contains(':')) return range(text);
    Step out{.kind = Step::Kind::kIndices};
    for (const std::string_view part : split(text, ',')) {
      SKIFF_ASSIGN(const auto number, integer(part));
      if (!number) return bad("a number is missing between brackets");
      out.indices.push_back(*number);
    }
    return out;
  }

  Result<Step> names(std::string_view text) const {
    Step out;
    Reader reader(text);
    while (true) {
      reader.skip_spaces();
      if (!reader.rest().starts_with('\'') && !reader.rest().starts_with('"')) break;
      SKIFF_ASSIGN(std::string name, reader.quoted());
      out.names.push_back(std::move(name));
      reader.skip_spaces();
      if (!reader.accept(",")) break;
    }
    if (!reader.done() || out.names.empty()) return bad("names between brackets are not readable");
    return out;
  }

  Result<Step> range(std::string_view text) const {
    Step out{.kind = Step::Kind::kSlice};
    const auto parts = split(text, ':');
    SKIFF_ASSIGN(out.from, integer(parts[0]));
    SKIFF_ASSIGN(out.to, integer(parts[1]));
    if (parts.size() > 2) {
      SKIFF_ASSIGN(const auto stride, integer(parts[2]));
      out.stride = stride.value_or(1);
    }
    if (parts.size() > 3 || out.stride < 1) return bad("a slice is [from:to] or [from:to:step]");
    return out;
  }

  Result<std::optional<std::int64_t>> integer(std::string_view text) const {
    text = trim(text);
    if (text.empty()) return std::optional<std::int64_t>();
    std::int64_t out = 0;
    const auto end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, out);
    if (read.ec != std::errc{} || read.ptr != end) {
      return bad(fmt::format("\"{}\" is no number", text));
    }
    return std::optional(out);
  }

  Result<Step> filter(std::string_view text) const {
    Filter out;
    Reader reader(trim(text));
    SKIFF_ASSIGN(out.left, reader.path());
    reader.skip_spaces();
    for (const char* operation : {"==", "!=", "<=", ">=", "<", ">"}) {
      if (!reader.accept(operation)) continue;
      out.operation = operation;
      break;
    }
    reader.skip_spaces();
    if (!out.operation.empty()) SKIFF_TRY(right_side(reader, out));
    reader.skip_spaces();
    if (!reader.done()) return bad("a filter is (@.field == value)");
    return Step{.kind = Step::Kind::kFilter, .filter = std::make_shared<const Filter>(out)};
  }

  static Result<void> right_side(Reader& reader, Filter& out) {
    if (reader.rest().starts_with('@') || reader.rest().starts_with('$')) {
      SKIFF_ASSIGN(out.right, reader.path());
      return {};
    }
    if (reader.rest().starts_with('"') || reader.rest().starts_with('\'')) {
      SKIFF_ASSIGN(const std::string text, reader.quoted());
      out.literal = json::string(text);
      return {};
    }
    auto parsed = json::parse(trim(reader.rest()));
    if (!parsed) return reader.bad("a filter compares with text in quotes, a number or a path");
    out.literal = std::move(*parsed);
    reader.at_ = reader.text_.size();
    return {};
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

struct JsonPath::Node {
  enum class Kind { kText, kPath, kRange } kind = Kind::kText;
  std::string text = {};
  Path path = {};
  std::vector<Node> body = {};
};

namespace {

using Node = JsonPath::Node;

// The end of the action that begins at `begin`, quotes respected.
std::size_t closing_brace(std::string_view text, std::size_t begin) {
  char quote = 0;
  for (std::size_t i = begin; i < text.size(); ++i) {
    if (quote != 0) {
      if (text[i] == '\\') {
        ++i;
      } else if (text[i] == quote) {
        quote = 0;
      }
    } else if (text[i] == '"' || text[i] == '\'') {
      quote = text[i];
    } else if (text[i] == '}') {
      return i;
    }
  }
  return std::string_view::npos;
}

Result<void> read_action(std::string_view action, std::vector<Node>& out, bool& range, bool& end) {
  Reader reader(trim(action));
  if (reader.rest() == "end") {
    end = true;
    return {};
  }
  range = reader.accept("range ");
  reader.skip_spaces();
  while (!reader.done()) {
    Node node;
    if (!range && (reader.rest().starts_with('"') || reader.rest().starts_with('\''))) {
      SKIFF_ASSIGN(node.text, reader.quoted());
    } else {
      const std::size_t before = reader.rest().size();
      node.kind = range ? Node::Kind::kRange : Node::Kind::kPath;
      SKIFF_ASSIGN(node.path, reader.path());
      if (reader.rest().size() == before) return reader.bad("write a path such as .metadata.name");
    }
    out.push_back(std::move(node));
    reader.skip_spaces();
  }
  if (range && out.empty()) return reader.bad("range needs a path");
  return {};
}

// Nodes up to {end} (inside a range) or the end of the text.
Result<std::vector<Node>> read_nodes(std::string_view text, std::size_t& at, bool inside) {
  std::vector<Node> out;
  while (at < text.size()) {
    const std::size_t open = text.find('{', at);
    if (open != at) {
      out.push_back({.text = std::string(text.substr(at, open - at))});
      at = open == std::string_view::npos ? text.size() : open;
      continue;
    }
    const std::size_t close = closing_brace(text, open + 1);
    if (close == std::string_view::npos) {
      return fail(Code::kBadRequest, fmt::format("jsonpath \"{}\": a brace is not closed", text));
    }
    at = close + 1;
    bool range = false, end = false;
    std::vector<Node> nodes;
    SKIFF_TRY(read_action(text.substr(open + 1, close - open - 1), nodes, range, end));
    if (end && inside) return out;
    if (end) {
      return fail(Code::kBadRequest, fmt::format("jsonpath \"{}\": {{end}} ends nothing", text));
    }
    if (range) {
      SKIFF_ASSIGN(nodes.front().body, read_nodes(text, at, true));
    }
    for (Node& node : nodes) out.push_back(std::move(node));
  }
  if (inside) {
    return fail(Code::kBadRequest, fmt::format("jsonpath \"{}\": range without {{end}}", text));
  }
  return out;
}

void render_nodes(const std::vector<Node>& nodes, const json::value& root, std::string& out) {
  for (const Node& node : nodes) {
    if (node.kind == Node::Kind::kText) {
      out += node.text;
    } else if (node.kind == Node::Kind::kRange) {
      for (const json::value* item : walk(node.path, root)) render_nodes(node.body, *item, out);
    } else {
      bool first = true;
      for (const json::value* value : walk(node.path, root)) {
        if (!first) out += ' ';
        first = false;
        out += plain_text(*value);
      }
    }
  }
}

}  // namespace

std::string plain_text(const json::value& value) {
  if (value.is_string()) return std::string(json::view(value.get_string()));
  return json::serialize(value);
}

JsonPath::JsonPath(std::vector<Node> nodes) : nodes_(std::move(nodes)) {}
JsonPath::JsonPath(JsonPath&&) noexcept = default;
JsonPath& JsonPath::operator=(JsonPath&&) noexcept = default;
JsonPath::~JsonPath() = default;

Result<JsonPath> JsonPath::parse(std::string_view text) {
  const std::string whole = text.contains('{')
                                ? std::string(text)
                                : fmt::format("{{{}{}}}", text.starts_with('.') ? "" : ".", text);
  std::size_t at = 0;
  SKIFF_ASSIGN(std::vector<Node> nodes, read_nodes(whole, at, false));
  return JsonPath(std::move(nodes));
}

std::string JsonPath::render(const json::value& root) const {
  std::string out;
  render_nodes(nodes_, root, out);
  return out;
}

std::vector<const json::value*> JsonPath::find(const json::value& root) const {
  Values out;
  for (const Node& node : nodes_) {
    if (node.kind != Node::Kind::kPath) continue;
    for (const json::value* value : walk(node.path, root)) out.push_back(value);
  }
  return out;
}

}  // namespace skiff::cli
