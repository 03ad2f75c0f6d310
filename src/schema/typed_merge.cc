// A configuration merged into a live object, and whether it is one that can be.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "schema/typed_fields.h"

namespace skiff::schema {
namespace {

class MergeWalk {
 public:
  explicit MergeWalk(const Registry& registry) : registry_(registry) {}

  // Nothing where neither side leaves anything.
  std::optional<json::value> run(const TypedPlace& place, const json::value* live,
                                 const json::value* config) const {
    if (live == nullptr || config == nullptr) return live == nullptr ? *config : *live;
    const Typed at(registry_, place);
    const Shape shape = at.shape_of(*config);
    if (shape == Shape::kMap && !at.atomic_map()) {
      const json::object* left = live->if_object();
      const json::object* right = config->if_object();
      if (!empty(left) || !empty(right)) return members(at, left, right);
    }
    if (shape == Shape::kList && !at.atomic_list()) {
      const json::array* left = live->if_array();
      const json::array* right = config->if_array();
      if (!empty(left) || !empty(right)) return items(at, left, right);
    }
    return *config;
  }

 private:
  template <class T>
  static bool empty(const T* container) {
    return container == nullptr || container->empty();
  }

  std::optional<json::value> members(const Typed& at, const json::object* live,
                                     const json::object* config) const {
    json::object out;
    const auto take = [&](std::string_view key, const json::value* l, const json::value* r) {
      const TypedPlace place = at.member(key).value_or(TypedPlace::deduced());
      if (auto merged = run(place, l, r)) out.emplace(key, std::move(*merged));
    };
    if (live != nullptr) {
      for (const auto& [key, value] : *live) {
        take(key, &value, config == nullptr ? nullptr : config->if_contains(key));
      }
    }
    if (config != nullptr) {
      for (const auto& [key, value] : *config) {
        if (live == nullptr || !live->contains(key)) take(key, nullptr, &value);
      }
    }
    if (out.empty()) return std::nullopt;
    return out;
  }

  struct Item {
    PathElement element = {};
    const json::value* value = nullptr;
    std::ptrdiff_t twin = -1;  // where the other list has it
    bool twice = false;
    bool taken = false;
  };

  static std::vector<Item> named(const Typed& at, const json::array* list) {
    std::vector<Item> out;
    if (list == nullptr) return out;
    for (const json::value& item : *list) {
      auto element = at.element_of(item);
      out.push_back({.element = element ? std::move(*element) : PathElement(), .value = &item});
    }
    return out;
  }

  static void pair_up(std::vector<Item>& live, std::vector<Item>& config) {
    std::vector<std::size_t> order(live.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
      const auto c = live[a].element <=> live[b].element;
      return c != 0 ? c < 0 : a < b;
    });
    const auto element = [&](std::size_t i) -> const PathElement& { return live[i].element; };
    for (std::size_t c = 0; c < config.size(); ++c) {
      const auto [from, to] = std::ranges::equal_range(order, config[c].element, {}, element);
      for (auto at = from; at != to; ++at) {
        live[*at].twin = static_cast<std::ptrdiff_t>(c);
        live[*at].twice = to - from > 1;
      }
      if (from != to) config[c].twin = static_cast<std::ptrdiff_t>(*from);
    }
  }

  // Items of both stand in config's order; live's own keep their place among them, as far as that
  // is possible.
  std::optional<json::value> items(const Typed& at, const json::array* live_list,
                                   const json::array* config_list) const {
    std::vector<Item> live = named(at, live_list), config = named(at, config_list);
    pair_up(live, config);
    std::vector<std::size_t> shared;
    for (std::size_t c = 0; c < config.size(); ++c) {
      if (config[c].twin >= 0) shared.push_back(c);
    }
    std::size_t next_shared = 0;
    json::array out;
    const auto put = [&](Item& c) {
      c.taken = true;
      // Of an item that live has twice the new one replaces both.
      const Item* twin = c.twin < 0 ? nullptr : &live[static_cast<std::size_t>(c.twin)];
      const json::value* l = twin == nullptr || twin->twice ? nullptr : twin->value;
      if (auto merged = run(at.items(), l, c.value)) out.push_back(std::move(*merged));
    };
    std::size_t l = 0, r = 0;
    while (l < live.size() || r < config.size()) {
      const auto twin = [&](std::size_t i) { return static_cast<std::size_t>(live[i].twin); };
      if (l < live.size() && r < config.size()) {
        if (live[l].twin >= 0 && twin(l) == r) {
          put(config[r]);
          ++l;
          ++r;
          ++next_shared;
          continue;
        }
        if (live[l].twin >= 0 && next_shared < shared.size() && twin(l) != shared[next_shared]) {
          ++l;  // its turn comes with config's
          continue;
        }
      }
      if (l < live.size()) {
        if (live[l].twin < 0) {
          out.push_back(*live[l].value);
          ++l;
          continue;
        }
        if (config[twin(l)].taken) ++l;
      }
      if (r < config.size()) {
        put(config[r]);
        if (next_shared < shared.size() && shared[next_shared] == r) ++next_shared;
        ++r;
      }
    }
    if (out.empty()) return std::nullopt;
    return out;
  }

  const Registry& registry_;
};

// A value as Go prints it: %v and, with `syntax`, %#v.
std::string go_value_text(const json::value& v, bool syntax) {
  if (const json::object* o = v.if_object()) {
    std::set<std::string_view> keys;
    for (const auto& member : *o) keys.insert(member.key());
    std::string inner;
    for (const std::string_view key : keys) {
      if (!inner.empty()) inner += syntax ? ", " : " ";
      inner += syntax ? json::serialize(json::string(key)) : std::string(key);
      inner += ":" + go_value_text(o->at(key), syntax);
    }
    return syntax ? "map[string]interface {}{" + inner + "}" : "map[" + inner + "]";
  }
  if (const json::array* a = v.if_array()) {
    std::string inner;
    for (const json::value& item : *a) {
      if (!inner.empty()) inner += syntax ? ", " : " ";
      inner += go_value_text(item, syntax);
    }
    return syntax ? "[]interface {}{" + inner + "}" : "[" + inner + "]";
  }
  if (v.is_null()) return syntax ? "interface {}(nil)" : "<nil>";
  if (v.is_string() && !syntax) return std::string(json::view(v.get_string()));
  if (v.is_double()) return fmt::format("{:g}", v.get_double());
  return json::serialize(v);
}

std::string_view go_type(const json::value& v) {
  if (v.is_object()) return "map[string]interface {}";
  if (v.is_array()) return "[]interface {}";
  if (v.is_string()) return "string";
  return v.is_bool() ? "bool" : v.is_double() ? "float64" : "int64";
}

class CheckWalk {
 public:
  explicit CheckWalk(const Registry& registry) : registry_(registry) {}

  void run(const TypedPlace& place, const json::value& v, const std::string& path) {
    const Typed at(registry_, place);
    switch (at.shape_of(v)) {
      case Shape::kScalar:
        return scalar(at, v, path);
      case Shape::kList:
        if (v.is_array()) return items(at, v.get_array(), path);
        if (!v.is_null())
          say(path, fmt::format("expected list, got &{{{}}}", go_value_text(v, false)));
        return;
      case Shape::kMap:
        if (v.is_object()) return members(at, v.get_object(), path);
        if (!v.is_null())
          say(path, fmt::format("expected map, got &{{{}}}", go_value_text(v, false)));
        return;
    }
  }

  Result<void> result() const {
    if (errors_.empty()) return {};
    if (errors_.size() == 1) return fail(Code::kInvalid, errors_[0]);
    std::string all = "errors:";
    for (const std::string& error : errors_) all += "\n  " + error;
    return fail(Code::kInvalid, all);
  }

 private:
  void say(const std::string& path, std::string_view what) {
    errors_.push_back(path.empty() ? std::string(what) : fmt::format("{}: {}", path, what));
  }

  void scalar(const Typed& at, const json::value& v, const std::string& path) {
    if (v.is_null()) return;
    const Schema& s = at.schema();
    const bool typed = at.mode() == TypedPlace::Mode::kSchema;
    if (typed && (s.type == Type::kInteger || s.type == Type::kNumber)) {
      if (!v.is_number()) {
        say(path, fmt::format("expected numeric (int or float), got {}", go_type(v)));
      }
    } else if (typed && s.type == Type::kString && (s.format.empty() || s.format == "byte")) {
      if (!v.is_string()) {
        say(path, fmt::format("expected string, got &value.valueUnstructured{{Value:{}}}",
                              go_value_text(v, true)));
      }
    } else if (typed && s.type == Type::kBoolean) {
      if (!v.is_bool()) {
        say(path, fmt::format("expected boolean, got &{{{}}}", go_value_text(v, false)));
      }
    } else if (v.is_structured()) {
      say(path, fmt::format("expected any scalar, got &{{{}}}", go_value_text(v, false)));
    }
  }

  void members(const Typed& at, const json::object& object, const std::string& path) {
    for (const auto& [key, value] : object) {
      const std::string below = path + "." + std::string(key);
      const std::optional<TypedPlace> place = at.member(key);
      if (!place) return say(below, "field not declared in schema");
      run(*place, value, below);
    }
  }

  void items(const Typed& at, const json::array& list, const std::string& path) {
    std::set<PathElement> seen;
    for (std::size_t i = 0; i < list.size(); ++i) {
      PathElement element = PathElement::index(static_cast<std::int64_t>(i));
      if (!at.atomic_list()) {
        auto named = at.element_of(list[i]);
        if (!named) return say(path, fmt::format("element {}: {}", i, named.error().message));
        element = std::move(*named);
        if (!seen.insert(element).second) {
          say(path, fmt::format("duplicate entries for key {}", element.text()));
        }
      }
      run(at.items(), list[i], path + element.text());
    }
  }

  const Registry& registry_;
  std::vector<std::string> errors_;
};

}  // namespace

Result<void> TypedFields::check(const json::value& config) const {
  CheckWalk walk(registry_);
  walk.run(root(), config, "");
  return walk.result();
}

Result<json::value> TypedFields::merge(const json::value& live, const json::value& config) const {
  if (!config.is_object()) return fail(Code::kBadRequest, "a configuration must be an object");
  return MergeWalk(registry_).run(root(), &live, &config).value_or(json::object());
}

}  // namespace skiff::schema
