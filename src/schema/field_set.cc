#include "schema/field_set.h"

#include <algorithm>

#include "base/limits.h"

namespace skiff::schema {
namespace {

using Node = FieldSet::Node;

// Walks two sorted levels side by side; a step that one side lacks comes as null.
template <class Fn>
void zip(const std::vector<Node>& a, const std::vector<Node>& b, Fn fn) {
  std::size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    const auto c = i == a.size()   ? std::strong_ordering::greater
                   : j == b.size() ? std::strong_ordering::less
                                   : a[i].element <=> b[j].element;
    fn(c <= 0 ? &a[i] : nullptr, c >= 0 ? &b[j] : nullptr);
    if (c <= 0) ++i;
    if (c >= 0) ++j;
  }
}

const Node* find(const std::vector<Node>& nodes, const PathElement& element) {
  const auto at = std::ranges::lower_bound(nodes, element, {}, &Node::element);
  return at != nodes.end() && at->element == element ? &*at : nullptr;
}

void keep(std::vector<Node>& nodes, Node node) {
  if (!node.empty()) nodes.push_back(std::move(node));
}

Result<FieldSet> read_field_set(const json::object& fields, bool& member, std::size_t depth) {
  if (depth > limits::kJsonDepth) return fail(Code::kBadRequest, "nested too deeply");
  std::vector<Node> nodes;
  nodes.reserve(fields.size());
  for (const auto& [key, below] : fields) {
    if (key == ".") {
      member = true;
      continue;
    }
    auto element = PathElement::parse(key);
    if (!element && element.error().code == Code::kNotFound) continue;
    if (!element) return std::unexpected(std::move(element.error()));
    Node node{.element = std::move(*element)};
    if (const json::object* inner = below.if_object()) {
      SKIFF_ASSIGN(node.children, read_field_set(*inner, node.member, depth + 1));
    } else if (!below.is_null()) {
      return fail(Code::kBadRequest, "a set of fields holds objects only");
    }
    if (node.children.empty()) node.member = true;
    nodes.push_back(std::move(node));
  }
  return FieldSet::build(std::move(nodes));
}

void write(const FieldSet& set, json::object& out) {
  out.reserve(out.size() + set.nodes().size());
  for (const Node& node : set.nodes()) {
    json::object& inner = out[node.element.encoded()].emplace_object();
    if (node.children.empty()) continue;
    if (node.member) inner["."].emplace_object();
    write(node.children, inner);
  }
}

}  // namespace

FieldSet::FieldSet() = default;
FieldSet::FieldSet(const FieldSet&) = default;
FieldSet::FieldSet(FieldSet&&) noexcept = default;
FieldSet& FieldSet::operator=(const FieldSet&) = default;
FieldSet& FieldSet::operator=(FieldSet&&) noexcept = default;
FieldSet::~FieldSet() = default;

Result<FieldSet> FieldSet::from_json(const json::value& fields) {
  if (fields.is_null()) return FieldSet();
  if (!fields.is_object()) return fail(Code::kBadRequest, "a set of fields must be an object");
  bool root = false;
  return read_field_set(fields.get_object(), root, 0);
}

json::object FieldSet::to_json() const {
  json::object out;
  write(*this, out);
  return out;
}

FieldSet FieldSet::of(std::initializer_list<std::initializer_list<std::string_view>> paths) {
  FieldSet out;
  for (const auto& path : paths) {
    std::vector<PathElement> elements;
    for (const std::string_view name : path) elements.push_back(PathElement::field(name));
    out.insert(elements);
  }
  return out;
}

FieldSet FieldSet::build(std::vector<Node> nodes) {
  std::erase_if(nodes, [](const Node& n) { return n.empty(); });
  if (!std::ranges::is_sorted(nodes, {}, &Node::element)) {
    std::ranges::sort(nodes, {}, &Node::element);
  }
  FieldSet out;
  // A step given twice (a hand-written managedFields may) counts as one.
  for (Node& node : nodes) {
    if (!out.nodes_.empty() && out.nodes_.back().element == node.element) {
      Node& last = out.nodes_.back();
      last.member = last.member || node.member;
      last.children = last.children.united(node.children);
    } else {
      out.nodes_.push_back(std::move(node));
    }
  }
  return out;
}

bool FieldSet::empty() const { return nodes_.empty(); }

std::size_t FieldSet::size() const {
  std::size_t count = 0;
  for (const Node& node : nodes_) count += (node.member ? 1 : 0) + node.children.size();
  return count;
}

bool FieldSet::contains(const PathElement& element) const {
  const Node* node = find(nodes_, element);
  return node != nullptr && node->member;
}

bool FieldSet::contains(const std::vector<PathElement>& path) const {
  const FieldSet* at = this;
  for (std::size_t i = 0; i < path.size(); ++i) {
    const Node* node = find(at->nodes_, path[i]);
    if (node == nullptr) return false;
    if (i + 1 == path.size()) return node->member;
    at = &node->children;
  }
  return false;
}

const FieldSet* FieldSet::below(const PathElement& element) const {
  const Node* node = find(nodes_, element);
  return node == nullptr || node->children.empty() ? nullptr : &node->children;
}

bool FieldSet::operator==(const FieldSet& other) const {
  return std::ranges::equal(nodes_, other.nodes_, [](const Node& a, const Node& b) {
    return a.member == b.member && a.element == b.element && a.children == b.children;
  });
}

void FieldSet::insert(const std::vector<PathElement>& path) {
  FieldSet* at = this;
  for (std::size_t i = 0; i < path.size(); ++i) {
    auto place = std::ranges::lower_bound(at->nodes_, path[i], {}, &Node::element);
    if (place == at->nodes_.end() || place->element != path[i]) {
      place = at->nodes_.insert(place, Node{.element = path[i]});
    }
    if (i + 1 == path.size()) place->member = true;
    at = &place->children;
  }
}

FieldSet FieldSet::united(const FieldSet& other) const {
  FieldSet out;
  zip(nodes_, other.nodes_, [&](const Node* a, const Node* b) {
    if (a == nullptr || b == nullptr) {
      out.nodes_.push_back(a == nullptr ? *b : *a);
    } else {
      out.nodes_.push_back({.element = a->element,
                            .member = a->member || b->member,
                            .children = a->children.united(b->children)});
    }
  });
  return out;
}

FieldSet FieldSet::common(const FieldSet& other) const {
  FieldSet out;
  zip(nodes_, other.nodes_, [&](const Node* a, const Node* b) {
    if (a == nullptr || b == nullptr) return;
    keep(out.nodes_, {.element = a->element,
                      .member = a->member && b->member,
                      .children = a->children.common(b->children)});
  });
  return out;
}

bool FieldSet::meets(const FieldSet& other) const {
  bool found = false;
  zip(nodes_, other.nodes_, [&](const Node* a, const Node* b) {
    if (found || a == nullptr || b == nullptr) return;
    found = (a->member && b->member) || a->children.meets(b->children);
  });
  return found;
}

FieldSet FieldSet::without(const FieldSet& other) const {
  FieldSet out;
  zip(nodes_, other.nodes_, [&](const Node* a, const Node* b) {
    if (a == nullptr) return;
    if (b == nullptr) return out.nodes_.push_back(*a);
    keep(out.nodes_, {.element = a->element,
                      .member = a->member && !b->member,
                      .children = a->children.without(b->children)});
  });
  return out;
}

FieldSet FieldSet::without_trees(const FieldSet& other) const {
  FieldSet out;
  zip(nodes_, other.nodes_, [&](const Node* a, const Node* b) {
    if (a == nullptr) return;
    if (b == nullptr) return out.nodes_.push_back(*a);
    if (b->member) return;
    keep(out.nodes_, {.element = a->element,
                      .member = a->member,
                      .children = a->children.without_trees(b->children)});
  });
  return out;
}

void FieldSet::each(const std::function<void(const Path&)>& fn) const {
  Path prefix;
  each(prefix, fn);
}

void FieldSet::each(Path& prefix, const std::function<void(const Path&)>& fn) const {
  for (const Node& node : nodes_) {
    if (!node.member) continue;
    prefix.push_back(&node.element);
    fn(prefix);
    prefix.pop_back();
  }
  for (const Node& node : nodes_) {
    prefix.push_back(&node.element);
    node.children.each(prefix, fn);
    prefix.pop_back();
  }
}

std::string FieldSet::text(const Path& path) {
  std::string out;
  for (const PathElement* element : path) out += element->text();
  return out;
}

}  // namespace skiff::schema
