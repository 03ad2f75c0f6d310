#include "schema/strategic_merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/limits.h"
#include "schema/go_words.h"

namespace skiff::schema {
namespace {

constexpr std::string_view kPatch = "$patch";
constexpr std::string_view kRetainKeys = "$retainKeys";
constexpr std::string_view kOrder = "$setElementOrder/";
constexpr std::string_view kDelete = "$deleteFromPrimitiveList/";

// Items are found by looking at each, which is quick for lists that people write and would let a
// hostile patch hold a thread for minutes.
constexpr std::size_t kMostItems = 4'000;

std::unexpected<Error> bad_patch(std::string why) {
  return fail(Code::kBadRequest, std::move(why));
}
// Where the real server has no code for what is wrong, it says 500.
std::unexpected<Error> odd(std::string why) { return fail(Code::kUnknown, std::move(why)); }

// What a patch puts where nothing of its type stood: without nulls, and without what directives
// are about. Nothing where it is all about one.
std::optional<json::value> taken(const json::value& patch) {
  if (const json::array* list = patch.if_array()) {
    json::array out;
    for (const json::value& item : *list) {
      if (auto kept = taken(item)) out.push_back(std::move(*kept));
    }
    return out;
  }
  const json::object* members = patch.if_object();
  if (members == nullptr) return patch;
  if (members->contains(kPatch)) return {};
  json::object out;
  for (const auto& [key, value] : *members) {
    if (value.is_null()) continue;
    if (auto kept = taken(value)) out[key] = std::move(*kept);
  }
  return out;
}

void erase_key(json::object& o, std::string_view key) {
  if (const auto at = o.find(key); at != o.end()) o.stable_erase(at);
}

// Two items are the same where this is: the value of the merge key, or the item itself.
json::value identity(const json::value& item, const std::string& merge_key) {
  if (merge_key.empty() || !item.is_object()) return item;
  const json::value* key = item.get_object().if_contains(merge_key);
  return key == nullptr ? json::value() : *key;
}

std::ptrdiff_t position(const json::array& list, const json::value& id, const std::string& key) {
  const auto at = std::ranges::find_if(
      list, [&](const json::value& item) { return identity(item, key) == id; });
  return at == list.end() ? -1 : at - list.begin();
}

// Puts the items that `order` names in its order; the others keep their place among themselves and,
// as far as both orders allow, towards the named ones.
json::array in_order(json::array merged, const json::array& before, const json::array& order,
                     const std::string& key) {
  json::array named, others, out;
  for (const json::value& o : order) {
    const std::ptrdiff_t at = position(merged, identity(o, key), key);
    if (at >= 0) named.push_back(merged[static_cast<std::size_t>(at)]);
  }
  for (json::value& item : merged) {
    if (position(named, identity(item, key), key) < 0) others.push_back(std::move(item));
  }
  std::size_t n = 0, m = 0;
  while (n < named.size() || m < others.size()) {
    bool take_other = n == named.size();
    if (!take_other && m < others.size()) {
      const std::ptrdiff_t a = position(before, identity(named[n], key), key);
      const std::ptrdiff_t b = position(before, identity(others[m], key), key);
      take_other = a >= 0 && b >= 0 && b < a;
    }
    out.push_back(std::move(take_other ? others[m++] : named[n++]));
  }
  return out;
}

class Merger {
 public:
  explicit Merger(const Registry& registry) : registry_(registry) {}

  Result<void> merge(const Schema& place, json::object& into, const json::object& patch,
                     std::size_t depth) {
    if (depth > limits::kJsonDepth) return bad_patch("the patch is nested too deeply");
    SchemaPtr holder;
    const Schema& s = registry_.resolve(place, holder);
    if (const json::value* directive = patch.if_contains(kPatch)) {
      const std::string_view word = json::get_string(*directive, {});
      if (word != "replace" && word != "delete") {
        return odd(
            fmt::format("unknown patch type: {} in map: {}", go_text(*directive), go_text(patch)));
      }
      into.clear();
      if (word == "delete") return {};
    }
    SKIFF_TRY(retain(into, patch));
    for (const auto& [key, value] : patch) {
      if (!is_directive(key)) SKIFF_TRY(member(s, into, patch, key, value, depth));
    }
    return directives(s, into, patch);
  }

 private:
  static bool is_directive(std::string_view key) {
    return key == kPatch || key == kRetainKeys || key.starts_with(kOrder) ||
           key.starts_with(kDelete);
  }

  static Result<void> retain(json::object& into, const json::object& patch) {
    const json::value* keys = patch.if_contains(kRetainKeys);
    if (keys == nullptr) return {};
    if (!keys->is_array()) return bad_patch("invalid patch format of retainKeys");
    const std::vector<std::string> kept = json::strings(keys->get_array());
    std::vector<std::string> gone;
    for (const auto& [key, value] : into) {
      if (std::ranges::find(kept, std::string_view(key)) == kept.end()) gone.emplace_back(key);
    }
    for (const std::string& key : gone) erase_key(into, key);
    return {};
  }

  static const Schema& place_of(const Schema& s, std::string_view key) {
    static const Schema kUnknown;
    if (const Schema* p = s.property(key)) return *p;
    return s.additional ? *s.additional : kUnknown;
  }

  Result<void> member(const Schema& s, json::object& into, const json::object& patch,
                      std::string_view key, const json::value& value, std::size_t depth) {
    if (value.is_null()) {
      erase_key(into, key);
      return {};
    }
    const Schema& place = place_of(s, key);
    json::value* there = into.if_contains(key);
    const bool maps = there != nullptr && there->is_object() && value.is_object();
    const bool lists = there != nullptr && there->is_array() && value.is_array();
    if (maps) return merge(place, there->get_object(), value.get_object(), depth + 1);
    if (lists && !place.merges_lists()) {
      *there = value;
      return {};
    }
    if (!lists) {
      if (auto whole = taken(value)) {
        into[key] = std::move(*whole);
      } else {
        erase_key(into, key);
      }
      return {};
    }
    json::value& target = *there;
    const json::value* order = patch.if_contains(std::string(kOrder) + std::string(key));
    SKIFF_TRY(bounded(key, target, value, order));
    SKIFF_TRY(alike(target.get_array(), value.get_array()));
    if (order != nullptr) SKIFF_TRY(follows(value.get_array(), *order, place.patch_merge_key));
    const json::array before = target.get_array();
    SKIFF_TRY(merge_list(place, target.get_array(), value.get_array(), depth));
    // What the patch names comes in its order, or in the one that it asks for.
    const bool ordered = order != nullptr && order->is_array();
    target = in_order(std::move(target.get_array()), before,
                      ordered ? order->get_array() : value.get_array(), place.patch_merge_key);
    return {};
  }

  // Items of a merged list are all of one type, and no lists.
  static Result<void> alike(const json::array& before, const json::array& patch) {
    std::string_view type;
    for (const json::array* list : {&before, &patch}) {
      for (const json::value& item : *list) {
        if (type.empty() && item.is_array()) {
          return fail(Code::kInvalid, "lists of lists are not supported");
        }
        if (!type.empty() && type != json::type_name(item)) {
          return odd(fmt::format("list element types are not identical: {}",
                                 go_text(json::array{before, patch})));
        }
        type = json::type_name(item);
      }
    }
    return {};
  }

  // What the patch holds must come in the order that it asks for.
  static Result<void> follows(const json::array& patch, const json::value& order,
                              const std::string& key) {
    if (!order.is_array()) return bad_patch("invalid patch format of setElementOrder list");
    const json::array& wanted = order.get_array();
    if (wanted.empty()) return {};
    std::size_t at = 0;
    for (const json::value& item : patch) {
      if (item.is_object() && item.get_object().contains(kPatch)) continue;
      const json::value id = identity(item, key);
      while (at < wanted.size() && identity(wanted[at], key) != id) ++at;
      if (at++ >= wanted.size()) {
        return odd(
            fmt::format("The order in patch list:\n{}\n doesn't match $setElementOrder list:\n{}\n",
                        go_text(patch), go_text(order)));
      }
    }
    return {};
  }

  static Result<void> bounded(std::string_view key, const json::value& target,
                              const json::value& value, const json::value* order) {
    const std::size_t ordered = order == nullptr ? 0 : json::get_array(*order, {}).size();
    const std::size_t items = json::get_array(target, {}).size() + value.get_array().size();
    if (items <= kMostItems && ordered <= kMostItems) return {};
    return fail(Code::kTooLarge,
                fmt::format("{}: a list of more than {} items cannot be merged", key, kMostItems));
  }

  Result<void> merge_list(const Schema& place, json::array& into, const json::array& patch,
                          std::size_t depth) {
    const std::string& key = place.patch_merge_key;
    static const Schema kUnknown;
    const Schema& item_place = place.items ? *place.items : kUnknown;
    for (const json::value& item : patch) {
      if (json::get_string(item, {kPatch}) == "replace") into.clear();
    }
    for (const json::value& item : patch) {
      if (key.empty() || !item.is_object()) {
        if (position(into, item, "") < 0) into.push_back(item);
        continue;
      }
      const std::string_view directive = json::get_string(item, {kPatch});
      if (directive == "merge") return odd("merging lists cannot yet be specified in the patch");
      const json::value id = identity(item, key);
      if (id.is_null()) {
        if (directive == "replace") continue;
        return odd(
            fmt::format("map: {} does not contain declared merge key: {}", go_text(item), key));
      }
      const std::ptrdiff_t at = position(into, id, key);
      if (directive == "delete") {
        if (at >= 0) into.erase(into.begin() + at);
        continue;
      }
      if (at < 0) into.emplace_back(json::object());
      json::value& target = at < 0 ? into.back() : into[static_cast<std::size_t>(at)];
      SKIFF_TRY(merge(item_place, target.get_object(), item.get_object(), depth + 1));
    }
    return {};
  }

  // What is said about lists that the patch itself does not hold.
  static Result<void> directives(const Schema& s, json::object& into, const json::object& patch) {
    for (const auto& [key, value] : patch) {
      const std::string_view name = key;
      const bool deletes = name.starts_with(kDelete);
      if (!deletes && !name.starts_with(kOrder)) continue;
      if (!value.is_array()) {
        return bad_patch(fmt::format("invalid patch format of {} list",
                                     deletes ? "primitive" : "setElementOrder"));
      }
      const std::string_view field = name.substr(name.find('/') + 1);
      json::value* list = into.if_contains(field);
      if (list == nullptr || !list->is_array()) continue;
      SKIFF_TRY(bounded(field, *list, value, &value));
      if (deletes) {
        json::array kept;
        for (json::value& item : list->get_array()) {
          if (position(value.get_array(), item, "") < 0) kept.push_back(std::move(item));
        }
        *list = std::move(kept);
      } else if (!patch.contains(field)) {
        const json::array before = list->get_array();
        *list = in_order(before, before, value.get_array(), place_of(s, field).patch_merge_key);
      }
    }
    return {};
  }

  const Registry& registry_;
};

}  // namespace

Result<json::value> apply_strategic_merge(const Registry& registry, const Schema& schema,
                                          json::value document, const json::value& patch) {
  if (!patch.is_object()) return bad_patch("a strategic merge patch must be an object");
  if (!document.is_object()) document.emplace_object();
  Merger merger(registry);
  SKIFF_TRY(merger.merge(schema, document.get_object(), patch.get_object(), 0));
  return document;
}

}  // namespace skiff::schema
