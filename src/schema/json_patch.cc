#include "schema/json_patch.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/limits.h"
#include "base/strings.h"

namespace skiff::schema {
namespace {

std::unexpected<Error> malformed(std::size_t index, std::string_view why) {
  return fail(Code::kInvalid, fmt::format("JSON patch operation {}: {}", index, why));
}

// A patch that cannot even be read as a list of operations.
std::unexpected<Error> undecodable(const json::value& v, std::string_view into) {
  const std::string_view what = v.is_array()    ? "array"
                                : v.is_string() ? "string"
                                : v.is_bool()   ? "bool"
                                : v.is_object() ? "object"
                                                : "number";
  return fail(
      Code::kBadRequest,
      fmt::format("error decoding patch: json: cannot unmarshal {} into Go {}", what, into));
}

std::unexpected<Error> misfit(std::string_view path, std::string_view why) {
  return fail(Code::kInvalid, fmt::format("the JSON patch does not fit the object: {}: {}",
                                          path.empty() ? "the whole object" : path, why));
}

using Pointer = std::vector<std::string>;

std::optional<Pointer> read_pointer(std::string_view text) {
  if (text.empty()) return Pointer{};
  if (text[0] != '/') return std::nullopt;
  Pointer out;
  for (const std::string_view piece : split(text.substr(1), '/')) {
    std::string token;
    for (std::size_t i = 0; i < piece.size(); ++i) {
      if (piece[i] != '~') {
        token += piece[i];
        continue;
      }
      const char next = i + 1 < piece.size() ? piece[i + 1] : '~';
      if (next == '0' || next == '1') ++i;  // any other tilde stands for itself
      token += next == '1' ? '/' : '~';
    }
    out.push_back(std::move(token));
  }
  return out;
}

// An index into a list of `size`; `-` is the place after its end where that is allowed.
std::optional<std::size_t> read_index(std::string_view token, std::size_t size, bool after_end) {
  if (token == "-") return after_end ? std::optional(size) : std::nullopt;
  std::int64_t out = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), out);
  if (error != std::errc{} || end != token.data() + token.size()) return std::nullopt;
  const auto places = static_cast<std::int64_t>(size) + (after_end ? 1 : 0);
  if (out < 0) out += places;  // counted from the end
  if (out < 0 || out >= places) return std::nullopt;
  return static_cast<std::size_t>(out);
}

json::value* step(json::value& at, const std::string& token) {
  if (json::object* o = at.if_object()) return o->if_contains(token);
  if (json::array* a = at.if_array()) {
    const std::optional<std::size_t> i = read_index(token, a->size(), false);
    return i ? &(*a)[*i] : nullptr;
  }
  return nullptr;
}

json::value* locate(json::value& root, const Pointer& pointer, std::size_t length) {
  json::value* at = &root;
  for (std::size_t i = 0; at != nullptr && i < length; ++i) at = step(*at, pointer[i]);
  return at;
}

// How many objects and lists are around the innermost value, as far as that is at most `most`.
// Counts what it looks at.
std::size_t depth_of(const json::value& v, std::size_t most, std::size_t& seen) {
  ++seen;
  if (!v.is_structured()) return 0;
  std::size_t deepest = 0;
  const auto look = [&](const json::value& inner) {
    if (most > 0) deepest = std::max(deepest, depth_of(inner, most - 1, seen));
  };
  if (const json::object* o = v.if_object()) {
    for (const auto& member : *o) look(member.value());
  } else if (const json::array* a = v.if_array()) {
    for (const json::value& item : *a) look(item);
  }
  return deepest + 1;
}

Result<void> add(json::value& root, const Pointer& to, std::string_view path, json::value value) {
  if (to.empty()) return misfit(path, "the whole object can only be replaced");
  if (to.size() > limits::kJsonDepth) return misfit(path, "nested too deeply");
  json::value* parent = locate(root, to, to.size() - 1);
  if (parent == nullptr) return misfit(path, "the place it is in does not exist");
  if (json::object* o = parent->if_object()) {
    (*o)[to.back()] = std::move(value);
    return {};
  }
  json::array* a = parent->if_array();
  if (a == nullptr) return misfit(path, "the place it is in is neither an object nor a list");
  const std::optional<std::size_t> i = read_index(to.back(), a->size(), true);
  if (!i) return misfit(path, "no such index");
  a->insert(a->begin() + static_cast<std::ptrdiff_t>(*i), std::move(value));
  return {};
}

Result<json::value> take(json::value& root, const Pointer& from, std::string_view path) {
  if (from.empty()) return misfit(path, "the whole object cannot go");
  json::value* found = locate(root, from, from.size());
  if (found == nullptr) return misfit(path, "does not exist");
  json::value out = std::move(*found);
  json::value* parent = locate(root, from, from.size() - 1);
  if (json::object* o = parent->if_object()) {
    o->stable_erase(o->find(from.back()));
  } else {
    json::array& a = parent->get_array();
    a.erase(a.begin() + (found - a.data()));
  }
  return out;
}

struct Operation {
  std::string op = {};
  std::string path_text = {}, from_text = {};
  Pointer path = {}, from = {};
  const json::value* value = nullptr;
};

Result<Operation> read_operation(const json::value& v, std::size_t index) {
  if (!v.is_object()) return undecodable(v, "value of type handlers.jsonPatchOp");
  for (const std::string_view field : {"op", "path", "from"}) {
    const json::value* text = json::find(v, {field});
    if (text == nullptr || text->is_string() || text->is_null()) continue;
    return undecodable(*text, fmt::format("struct field jsonPatchOp.{} of type string", field));
  }
  Operation out{.op = std::string(json::get_string(v, {"op"}))};
  const bool copies = out.op == "move" || out.op == "copy";
  const bool valued = out.op == "add" || out.op == "replace" || out.op == "test";
  if (!copies && !valued && out.op != "remove") {
    return malformed(index, fmt::format("unknown op \"{}\"", out.op));
  }
  const json::value* path = json::find(v, {"path"});
  if (path == nullptr || !path->is_string()) return malformed(index, "path is missing");
  out.path_text = json::view(path->get_string());
  const std::optional<Pointer> pointer = read_pointer(out.path_text);
  if (!pointer) return malformed(index, fmt::format("bad path \"{}\"", out.path_text));
  out.path = *pointer;
  if (copies) {
    const json::value* from = json::find(v, {"from"});
    if (from == nullptr || !from->is_string()) return malformed(index, "from is missing");
    out.from_text = json::view(from->get_string());
    const std::optional<Pointer> source = read_pointer(out.from_text);
    if (!source) return malformed(index, fmt::format("bad from \"{}\"", out.from_text));
    out.from = *source;
  }
  static const json::value kNull;
  out.value = json::find(v, {"value"});
  if (out.value == nullptr) out.value = &kNull;
  return out;
}

class Patch {
 public:
  explicit Patch(json::value& root) : root_(root) {}

  Result<void> apply(const Operation& o) {
    if (o.op == "add" || o.op == "replace") SKIFF_TRY(check_depth(*o.value, o));
    if (o.op == "add") return add(root_, o.path, o.path_text, *o.value);
    if (o.op == "move") return move(o);
    if (o.op == "copy") return copy(o);
    json::value* found = locate(root_, o.path, o.path.size());
    if (found == nullptr) return absent(o);
    if (o.op == "replace") {
      *found = *o.value;
    } else if (o.op == "remove") {
      SKIFF_TRY(take(root_, o.path, o.path_text));
    } else if (*found != *o.value) {
      return misfit(o.path_text, "the test failed");
    }
    return {};
  }

 private:
  // A member that is not there can be replaced, as if it were, and is equal to null.
  Result<void> absent(const Operation& o) {
    const json::value* parent = locate(root_, o.path, o.path.size() - 1);
    const bool member = parent != nullptr && parent->is_object();
    if (member && o.op == "replace") return add(root_, o.path, o.path_text, *o.value);
    if (member && o.op == "test" && o.value->is_null()) return {};
    return misfit(o.path_text, "does not exist");
  }

  Result<void> move(const Operation& o) {
    if (o.path_text.starts_with(o.from_text + "/")) {
      return misfit(o.path_text, "an object cannot be moved into itself");
    }
    SKIFF_ASSIGN(json::value moved, take(root_, o.from, o.from_text));
    SKIFF_TRY(check_depth(moved, o));
    return add(root_, o.path, o.path_text, std::move(moved));
  }

  Result<void> copy(const Operation& o) {
    static const json::value kNull;
    if (o.from.empty()) return misfit(o.from_text, "the whole object cannot be copied");
    const json::value* found = locate(root_, o.from, o.from.size());
    if (found == nullptr) {  // a member that is not there is null
      const json::value* parent = locate(root_, o.from, o.from.size() - 1);
      if (parent == nullptr || !parent->is_object()) return misfit(o.from_text, "does not exist");
      found = &kNull;
    }
    copied_ += json::serialize(*found).size();
    if (copied_ > limits::kRequestBodyBytes) {
      return fail(Code::kTooLarge, "the copies of the JSON patch are too large");
    }
    SKIFF_TRY(check_depth(*found, o));
    return add(root_, o.path, o.path_text, json::value(*found));
  }

  // A body is at most so deep, but operations that put its parts into each other could build a
  // tower from which no thread's stack comes down again.
  Result<void> check_depth(const json::value& v, const Operation& o) {
    const std::size_t depth = depth_of(v, limits::kJsonDepth, measured_);
    if (o.path.size() + depth > limits::kJsonDepth) return misfit(o.path_text, "nested too deeply");
    if (measured_ <= limits::kJsonPatchMovedValues) return {};
    return fail(Code::kTooLarge,
                fmt::format("the JSON patch moves and copies more than {} values; send several "
                            "smaller patches",
                            limits::kJsonPatchMovedValues));
  }

  json::value& root_;
  std::size_t copied_ = 0;
  std::size_t measured_ = 0;
};

}  // namespace

Result<json::value> apply_json_patch(json::value document, const json::value& patch) {
  if (!patch.is_array()) return undecodable(patch, "value of type []handlers.jsonPatchOp");
  const json::array& operations = patch.get_array();
  if (operations.size() > limits::kJsonPatchOperations) {
    return fail(Code::kTooLarge,
                fmt::format("The allowed maximum operations in a JSON patch is {}, got {}",
                            limits::kJsonPatchOperations, operations.size()));
  }
  Patch run(document);
  for (std::size_t i = 0; i < operations.size(); ++i) {
    SKIFF_ASSIGN(const Operation o, read_operation(operations[i], i));
    SKIFF_TRY(run.apply(o));
  }
  return document;
}

}  // namespace skiff::schema
