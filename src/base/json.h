// JSON values (Boost.JSON) and the few ways we read and change them. This is the only file that
// includes Boost.JSON; everybody else says `json::value`.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/string.hpp>
#include <boost/json/value.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace skiff {

namespace json {

using boost::json::array;
using boost::json::object;
using boost::json::string;
using boost::json::value;
using boost::json::value_ref;

// Strict JSON, at most limits::kJsonDepth deep. The error says where.
Result<value> parse(std::string_view text);
// As parse(), but what an object gives twice is put together, as Go reads it into one struct: maps
// are joined, of anything else the last counts.
Result<value> parse_joining(std::string_view text);
// The text with U+FFFD for what is no character: half a pair of surrogates, bytes that are no
// UTF-8. Go reads such texts.
std::string with_replacements(std::string_view text);
// Compact, keys in their stored order.
std::string serialize(const value& v);
std::string serialize(const object& v);
// Indented by two spaces, for people.
std::string pretty(const value& v);

// The value at a path of object keys, or nullptr. A key holding a dot is given as its own element:
// find(v, {"metadata", "annotations", "a.b/c"}).
const value* find(const value& v, std::initializer_list<std::string_view> path);
const value* find(const object& v, std::initializer_list<std::string_view> path);

// Typed reads along a path; absent or of another type gives the fallback.
std::string_view get_string(const value& v, std::initializer_list<std::string_view> path,
                            std::string_view fallback = {});
std::optional<std::int64_t> get_int(const value& v, std::initializer_list<std::string_view> path);
std::optional<bool> get_bool(const value& v, std::initializer_list<std::string_view> path);
// An empty array or object where absent, so that callers can always loop.
const array& get_array(const value& v, std::initializer_list<std::string_view> path);
const object& get_object(const value& v, std::initializer_list<std::string_view> path);

// The object at the path, made (with every object on the way) where absent. Anything else in the
// way is replaced: callers have validated before.
object& make_object(value& v, std::initializer_list<std::string_view> path);
object& make_object(object& v, std::initializer_list<std::string_view> path);
void set(value& v, std::initializer_list<std::string_view> path, value leaf);

inline std::string_view view(const string& s) { return {s.data(), s.size()}; }
std::vector<std::string> strings(const array& a);
std::string_view type_name(
    const value& v);  // string, integer, number, boolean, array, object, null

}  // namespace json

// An API object as everybody but its writer sees it: immutable, shared, parsed once.
using Object = std::shared_ptr<const json::value>;

}  // namespace skiff
