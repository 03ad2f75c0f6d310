// The kinds served at this moment: the built-in ones and those that CustomResourceDefinitions add.
// A table is immutable; a change of a definition makes a new one.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/kind.h"
#include "apiserver/routes.h"
#include "base/json.h"
#include "schema/schema.h"

namespace skiff::apiserver {

inline constexpr std::string_view kCrdKey = "customresourcedefinitions.apiextensions.k8s.io";
inline constexpr std::string_view kCrdFinalizer = "customresourcecleanup.apiextensions.k8s.io";

// The namespaces that exist from the start and for ever.
inline constexpr std::string_view kPermanentNamespaces[] = {"default", "kube-system", "kube-public",
                                                            "kube-node-lease", "skiff-system"};

struct ServedKind {
  api::Kind kind = {};
  bool custom = false;  // from a CustomResourceDefinition
  // Where and in which version objects are kept.
  std::string storage_group = {};
  std::string storage_version = {};
  std::string storage_schema = {};  // name in schema::Registry; empty for a custom kind
  // Of a custom kind; null where it has none or one that cannot be read.
  schema::SchemaPtr schema = {};
  schema::SchemaPtr kept_schema = {};  // of the version that is kept
  // The revision of the definition: objects that were written before may not fit it.
  std::uint64_t defined_at = 0;

  const api::Resource& resource() const { return kind.resource; }
  // Objects are kept in another version than this endpoint shows.
  bool converts() const {
    return storage_version != kind.resource.version || storage_group != kind.resource.group;
  }
  std::string storage_api_version() const { return kept().api_version(); }
  // Under which store::Key::resource the objects are.
  std::string storage_key() const { return kept().key(); }
  // Between this endpoint's version and the kept one, with apiVersion.
  void to_storage(json::value& object) const;
  void from_storage(json::value& object) const;

 private:
  api::Resource kept() const;
};

struct Definition;
using DefinitionPtr = std::shared_ptr<const Definition>;

// With status and scale, where the kind has them.
std::vector<api::Subresource> subresources(const ServedKind& kind);
std::vector<std::string> verbs(const ServedKind& kind);
bool allows(const ServedKind& kind, std::string_view subresource, Verb verb);
// Only asked, as reviews are; nothing of it is kept.
bool is_question(const ServedKind& kind);

using ServedKindPtr = std::shared_ptr<const ServedKind>;

class KindTable {
 public:
  explicit KindTable(const std::vector<api::Kind>& built_in);
  // The kinds of this table and those of the definitions. The kinds themselves are shared, not
  // copied. A definition of a built-in kind changes nothing: the built-in one is served.
  KindTable with(const std::vector<DefinitionPtr>& definitions) const;

  const ServedKind* find(std::string_view group, std::string_view version,
                         std::string_view plural) const;
  // By Resource::key(), in the version objects are kept in.
  const ServedKind* by_key(std::string_view key) const;
  bool built_in(std::string_view key) const;

  struct Group {
    std::string name = {};
    std::vector<std::string> versions = {};  // preferred first
  };
  const std::vector<Group>& groups() const { return groups_; }
  // By their plurals.
  const std::vector<ServedKindPtr>& in(std::string_view group, std::string_view version) const;
  const std::vector<ServedKindPtr>& all() const { return kinds_; }

 private:
  using GroupVersion = std::pair<std::string_view, std::string_view>;  // texts of a kind in kinds_
  void add(ServedKindPtr kind);
  void sort_versions();

  std::vector<ServedKindPtr> kinds_;
  std::map<std::string, const ServedKind*, std::less<>> by_key_;
  std::map<GroupVersion, std::vector<ServedKindPtr>> by_version_;
  std::vector<Group> groups_;
  std::map<std::string_view, std::size_t> group_at_;  // in groups_; texts of a kind in kinds_
};

// v2 before v1 before v1beta2 before v1alpha1 before anything else, as discovery orders versions.
bool version_before(std::string_view a, std::string_view b);

}  // namespace skiff::apiserver
