#include "schema/typed_fields.h"

#include <algorithm>
#include <span>

namespace skiff::schema {
namespace {

bool has_items(const json::value* v) {
  if (v == nullptr) return false;
  return (v->is_array() && !v->get_array().empty()) || (v->is_object() && !v->get_object().empty());
}

bool same(const json::value& a, const json::value& b) {
  return a == b || (a.is_number() && b.is_number() && compare_scalars(a, b) == 0);
}

TypedPlace member_or_deduced(const Typed& at, std::string_view name) {
  return at.member(name).value_or(TypedPlace::deduced());
}

using Items = std::vector<std::pair<PathElement, const json::value*>>;

// The items of a list by name; those of one name in the order of the list.
Items named_items(const Typed& at, const json::value& list) {
  Items out;
  if (!list.is_array()) return out;
  out.reserve(list.get_array().size());
  for (const json::value& item : list.get_array()) {
    if (auto element = at.element_of(item)) out.emplace_back(std::move(*element), &item);
  }
  std::ranges::sort(out, [](const auto& a, const auto& b) {
    const auto order = a.first <=> b.first;
    return order != 0 ? order < 0 : a.second < b.second;
  });
  return out;
}

class LeafWalk {
 public:
  explicit LeafWalk(const Registry& registry) : registry_(registry) {}

  void run(const TypedPlace& place, const json::value& v, bool& member, FieldSet& below) const {
    const Typed at(registry_, place);
    switch (at.shape_of(v)) {
      case Shape::kScalar:
        member = true;
        return;
      case Shape::kList:
        if (at.atomic_list()) {
          member = true;
        } else if (v.is_array()) {
          below = items(at, v);
        }
        return;
      case Shape::kMap:
        if (at.atomic_map()) {
          member = true;
        } else if (v.is_object()) {
          below = members(at, v.get_object());
        }
        return;
    }
  }

 private:
  FieldSet members(const Typed& at, const json::object& object) const {
    std::vector<FieldSet::Node> nodes;
    nodes.reserve(object.size());
    for (const auto& [key, value] : object) {
      FieldSet::Node node{.element = PathElement::field(key)};
      run(member_or_deduced(at, key), value, node.member, node.children);
      const bool bare = value.is_null() || (value.is_object() && value.get_object().empty());
      if (bare || !at.declares(key)) node.member = true;
      nodes.push_back(std::move(node));
    }
    return FieldSet::build(std::move(nodes));
  }

  FieldSet items(const Typed& at, const json::value& list) const {
    const Items named = named_items(at, list);
    std::vector<FieldSet::Node> nodes;
    for (std::size_t i = 0; i < named.size();) {
      std::size_t end = i + 1;
      while (end < named.size() && named[end].first == named[i].first) ++end;
      FieldSet::Node node{.element = named[i].first};
      // Of items that stand twice nobody can own a part.
      if (end == i + 1) run(at.items(), *named[i].second, node.member, node.children);
      node.member = true;
      nodes.push_back(std::move(node));
      i = end;
    }
    return FieldSet::build(std::move(nodes));
  }

  const Registry& registry_;
};

class CompareWalk {
 public:
  explicit CompareWalk(const Registry& registry) : registry_(registry) {}

  struct Delta {
    bool changed = false, removed = false;
    FieldSet changed_below, removed_below;
  };

  // Either side may be null, not both.
  Delta run(const TypedPlace& place, const json::value* before, const json::value* after,
            const json::value* blank, const FieldSet* ignored) const {
    Delta delta;
    if (before != nullptr && after != nullptr && same(*before, *after)) return delta;
    const Typed at(registry_, place);
    const Shape left = at.shape_of(before != nullptr ? *before : *after);
    const Shape right = at.shape_of(after != nullptr ? *after : *before);
    if (left != right) shaped(at, left, before, after, blank, ignored, delta);
    const bool leaf = shaped(at, right, before, after, blank, ignored, delta);
    if (!leaf && before == nullptr) delta.changed = true;
    if (!leaf && after == nullptr) delta.removed = true;
    return delta;
  }

 private:
  struct Levels {
    std::vector<FieldSet::Node> changed, removed;
  };

  // True where the place counts as one value.
  bool shaped(const Typed& at, Shape shape, const json::value* before, const json::value* after,
              const json::value* blank, const FieldSet* ignored, Delta& delta) const {
    const bool whole =
        shape == Shape::kScalar ||
        (shape == Shape::kList && (at.atomic_list() || neither(before, after, true))) ||
        (shape == Shape::kMap && (at.atomic_map() || neither(before, after, false)));
    if (whole) {
      if (after == nullptr) {
        delta.removed = true;
      } else if (before == nullptr || !same(*before, *after)) {
        delta.changed = true;
      }
      return true;
    }
    Levels levels;
    if (shape == Shape::kList) {
      items(at, before, after, levels);
    } else {
      members(at, before, after, blank, ignored, levels);
    }
    delta.changed_below = delta.changed_below.united(FieldSet::build(std::move(levels.changed)));
    delta.removed_below = delta.removed_below.united(FieldSet::build(std::move(levels.removed)));
    return false;
  }

  // Empty and absent differ: where neither side has anything, the place itself is the value.
  static bool neither(const json::value* before, const json::value* after, bool list) {
    const auto none = [&](const json::value* v) { return !has_items(v) || v->is_array() != list; };
    return none(before) && none(after);
  }

  static void add(Levels& levels, const PathElement& element, Delta delta) {
    if (delta.changed || !delta.changed_below.empty()) {
      levels.changed.push_back({element, delta.changed, std::move(delta.changed_below)});
    }
    if (delta.removed || !delta.removed_below.empty()) {
      levels.removed.push_back({element, delta.removed, std::move(delta.removed_below)});
    }
  }

  void members(const Typed& at, const json::value* before, const json::value* after,
               const json::value* blank, const FieldSet* ignored, Levels& levels) const {
    const json::object* left = before == nullptr ? nullptr : before->if_object();
    const json::object* right = after == nullptr ? nullptr : after->if_object();
    const json::object* empty = blank == nullptr ? nullptr : blank->if_object();
    const auto one = [&](std::string_view key, const json::value* l, const json::value* r) {
      const FieldSet* below = nullptr;
      if (ignored != nullptr) {
        const PathElement element = PathElement::field(key);
        if (ignored->contains(element)) return;
        below = ignored->below(element);
      }
      const json::value* nothing = empty == nullptr ? nullptr : empty->if_contains(key);
      if (l == nullptr) l = nothing;
      if (r == nullptr) r = nothing;
      if (l == r) return;
      Delta delta = run(member_or_deduced(at, key), l, r, nothing, below);
      add(levels, PathElement::field(key), std::move(delta));
    };
    if (left != nullptr) {
      for (const auto& [key, value] : *left) {
        one(key, &value, right == nullptr ? nullptr : right->if_contains(key));
      }
    }
    if (right == nullptr) return;
    for (const auto& [key, value] : *right) {
      if (left == nullptr || !left->contains(key)) one(key, nullptr, &value);
    }
  }

  void items(const Typed& at, const json::value* before, const json::value* after,
             Levels& levels) const {
    const Items left = before == nullptr ? Items() : named_items(at, *before);
    const Items right = after == nullptr ? Items() : named_items(at, *after);
    std::size_t i = 0, j = 0;
    while (i < left.size() || j < right.size()) {
      const bool from_left =
          j == right.size() || (i < left.size() && left[i].first <= right[j].first);
      const PathElement& element = from_left ? left[i].first : right[j].first;
      const std::size_t l = i, r = j;
      while (i < left.size() && left[i].first == element) ++i;
      while (j < right.size() && right[j].first == element) ++j;
      add(levels, element,
          group(at, std::span(left).subspan(l, i - l), std::span(right).subspan(r, j - r)));
    }
  }

  using Group = std::span<const Items::value_type>;

  // The items of one name. Twice the same name is one value that nobody owns a part of.
  Delta group(const Typed& at, Group left, Group right) const {
    const auto first = [](Group g) { return g.empty() ? nullptr : g.front().second; };
    if (left.size() <= 1 && right.size() <= 1) {
      return run(at.items(), first(left), first(right), nullptr, nullptr);
    }
    Delta delta;
    if (left.size() > 1 && right.size() > 1) {
      delta.changed = !std::ranges::equal(
          left, right, [](const auto& a, const auto& b) { return same(*a.second, *b.second); });
    } else if (left.size() > 1) {
      if (!right.empty()) delta = run(at.items(), nullptr, first(right), nullptr, nullptr);
      delta.removed = true;
    } else {
      if (!left.empty()) delta = run(at.items(), first(left), nullptr, nullptr, nullptr);
      delta.changed = true;
    }
    return delta;
  }

  const Registry& registry_;
};

class RemoveWalk {
 public:
  explicit RemoveWalk(const Registry& registry) : registry_(registry) {}

  // Null where nothing is left.
  json::value run(const TypedPlace& place, const json::value& v, const FieldSet& fields) const {
    const Typed at(registry_, place);
    switch (at.shape_of(v)) {
      case Shape::kScalar:
        return v;
      case Shape::kList:
        return !v.is_array() || at.atomic_list() ? json::value() : items(at, v.get_array(), fields);
      case Shape::kMap:
        return !v.is_object() || at.atomic_map() ? json::value()
                                                 : members(at, v.get_object(), fields);
    }
    return {};
  }

 private:
  json::value members(const Typed& at, const json::object& object, const FieldSet& fields) const {
    json::object out;
    for (const auto& [key, value] : object) {
      const PathElement element = PathElement::field(key);
      if (fields.contains(element)) continue;
      // What is emptied stays as null: it was not taken out itself, so its owner keeps it.
      const FieldSet* below = fields.below(element);
      out.emplace(key, below == nullptr ? value : run(member_or_deduced(at, key), value, *below));
    }
    return out.empty() ? json::value() : json::value(std::move(out));
  }

  json::value items(const Typed& at, const json::array& list, const FieldSet& fields) const {
    json::array out;
    for (const json::value& item : list) {
      const auto element = at.element_of(item);
      if (element && fields.contains(*element)) continue;
      const FieldSet* below = element ? fields.below(*element) : nullptr;
      out.push_back(below == nullptr ? item : run(at.items(), item, *below));
    }
    return out.empty() ? json::value() : json::value(std::move(out));
  }

  const Registry& registry_;
};

FieldSet add_parents(const Registry& registry, const TypedPlace& place, const FieldSet& fields) {
  const Typed at(registry, place);
  std::vector<FieldSet::Node> nodes;
  nodes.reserve(fields.nodes().size());
  for (const FieldSet::Node& node : fields.nodes()) {
    FieldSet::Node next{.element = node.element, .member = node.member};
    if (node.children.empty()) {
      nodes.push_back(std::move(next));
      continue;
    }
    TypedPlace inner = TypedPlace::opaque();
    if (node.element.kind() == PathElement::Kind::kField && at.allows(Shape::kMap)) {
      inner = member_or_deduced(at, node.element.name());
      next.member = next.member || at.declares(node.element.name());
    } else if (node.element.kind() == PathElement::Kind::kKey && at.allows(Shape::kList)) {
      inner = at.items();
    }
    next.children = add_parents(registry, inner, node.children);
    nodes.push_back(std::move(next));
  }
  return FieldSet::build(std::move(nodes));
}

// True where the place has become one value, which is owned whole or not at all.
bool reconcile(const Registry& registry, const TypedPlace& place, FieldSet& fields) {
  const Typed at(registry, place);
  const bool map = at.allows(Shape::kMap);
  if (map && at.untyped_map()) return false;
  if (map ? at.atomic_map() : at.allows(Shape::kList) && at.atomic_list()) return true;
  std::vector<FieldSet::Node> nodes;
  for (FieldSet::Node node : fields.nodes()) {
    const std::optional<TypedPlace> inner = map ? at.member(node.element.name()) : at.items();
    if (!node.children.empty() && inner && reconcile(registry, *inner, node.children)) {
      node.member = true;
      node.children = FieldSet();
    }
    nodes.push_back(std::move(node));
  }
  fields = FieldSet::build(std::move(nodes));
  return false;
}

}  // namespace

TypedPlace TypedFields::root() const {
  TypedPlace place = schema_ ? TypedPlace::of(*schema_) : TypedPlace::deduced();
  place.resource = true;
  return place;
}

FieldSet TypedFields::leaf_set(const json::value& object) const {
  bool member = false;
  FieldSet out;
  LeafWalk(registry_).run(root(), object, member, out);
  return out;
}

TypedFields::Change TypedFields::compare(const json::value& before, const json::value& after,
                                         const json::value& blank, const FieldSet& ignored) const {
  CompareWalk::Delta delta = CompareWalk(registry_).run(root(), &before, &after, &blank, &ignored);
  return {.changed = std::move(delta.changed_below), .removed = std::move(delta.removed_below)};
}

json::value TypedFields::remove(const json::value& object, const FieldSet& fields) const {
  return RemoveWalk(registry_).run(root(), object, fields);
}

FieldSet TypedFields::with_parents(const FieldSet& fields) const {
  return add_parents(registry_, root(), fields);
}

FieldSet TypedFields::reconciled(const FieldSet& fields) const {
  FieldSet out = fields;
  reconcile(registry_, root(), out);
  return out;
}

}  // namespace skiff::schema
