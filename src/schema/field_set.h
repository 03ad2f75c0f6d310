// A set of paths into an API object, and its FieldsV1 form: what one manager owns.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "schema/field_path.h"

namespace skiff::schema {

class FieldSet {
 public:
  struct Node;
  using Path = std::vector<const PathElement*>;

  FieldSet();
  FieldSet(const FieldSet&);
  FieldSet(FieldSet&&) noexcept;
  FieldSet& operator=(const FieldSet&);
  FieldSet& operator=(FieldSet&&) noexcept;
  ~FieldSet();

  // From an object of FieldsV1. What a later version of it may hold is left out.
  static Result<FieldSet> from_json(const json::value& fields);
  json::object to_json() const;
  // Of fields, for sets that stand in code: {"metadata", "labels"}.
  static FieldSet of(std::initializer_list<std::initializer_list<std::string_view>> paths);

  bool empty() const;
  std::size_t size() const;  // how many paths
  bool contains(const PathElement& element) const;
  bool contains(const std::vector<PathElement>& path) const;
  // What is below a step; null where nothing is.
  const FieldSet* below(const PathElement& element) const;
  bool operator==(const FieldSet& other) const;

  void insert(const std::vector<PathElement>& path);
  FieldSet united(const FieldSet& other) const;
  FieldSet common(const FieldSet& other) const;
  bool meets(const FieldSet& other) const;  // common() has something
  // Without the paths of `other`; what is below them stays.
  FieldSet without(const FieldSet& other) const;
  // Without the paths of `other` and everything below them.
  FieldSet without_trees(const FieldSet& other) const;

  // Each path: those of a level before those below it, sorted.
  void each(const std::function<void(const Path&)>& fn) const;
  // .spec.containers[name="c"].image
  static std::string text(const Path& path);

  const std::vector<Node>& nodes() const { return nodes_; }
  // For those who build one: nodes in any order, each step once; empty ones are left out.
  static FieldSet build(std::vector<Node> nodes);

 private:
  void each(Path& prefix, const std::function<void(const Path&)>& fn) const;

  std::vector<Node> nodes_;  // sorted
};

// A step that is in the set itself, or has something below that is, or both.
struct FieldSet::Node {
  PathElement element = {};
  bool member = false;
  FieldSet children = {};

  bool empty() const { return !member && children.empty(); }
};

}  // namespace skiff::schema
