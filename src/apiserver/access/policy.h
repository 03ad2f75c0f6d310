// Who holds which rules, indexed by subject: an immutable picture of all roles and bindings.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "apiserver/access/rules.h"
#include "apiserver/authn.h"
#include "base/json.h"

namespace skiff::apiserver {

inline constexpr std::string_view kRbacGroup = "rbac.authorization.k8s.io";

using Rules = std::shared_ptr<const std::vector<Rule>>;

// RoleBinding (in a namespace) or ClusterRoleBinding.
struct Binding {
  struct Subject {
    std::string kind = {};
    std::string ns = {};
    std::string name = {};
  };
  std::string ns = {};  // empty: a ClusterRoleBinding
  std::string name = {};
  std::string role_kind = {};
  std::string role_name = {};
  std::vector<Subject> subjects = {};
};
Binding binding_of(const json::value& object);

// Roles by namespace and name; ClusterRoles have no namespace.
using Roles = std::map<std::pair<std::string, std::string>, Rules>;

struct Decision {
  bool allowed = false;
  std::string reason = {};  // as SubjectAccessReview tells it
};

class Policy {
 public:
  Policy() = default;
  Policy(Roles roles, const std::vector<std::shared_ptr<const Binding>>& bindings);

  Decision decide(const Identity& who, const Action& action) const;
  // The rules of every role that somebody has in a namespace (empty: in the whole cluster), each
  // role once however many bindings name it. `problems`: what bindings name that does not exist.
  std::vector<Rules> rules_for(const Identity& who, const std::string& ns,
                               std::vector<std::string>* problems = nullptr) const;
  // What a binding in `ns` would give; null where there is no such role.
  Rules role(std::string_view kind, const std::string& ns, const std::string& name) const;

 private:
  struct Grant {
    std::size_t binding = 0;  // its number, since one may name a user and a group of theirs
    Rules rules = {};         // null: the role is absent
    std::string text = {};    // where it comes from, or what is absent
  };
  struct Grants {
    std::vector<Grant> everywhere = {};
    std::unordered_map<std::string, std::vector<Grant>> in = {};  // by namespace
  };
  using Index = std::unordered_map<std::string, Grants>;

  // Calls `visit` with every grant; stops where it returns false.
  template <class Visit>
  void visit(const Identity& who, const std::string& ns, Visit&& visit) const;

  Roles roles_;
  Index users_;
  Index groups_;
};

std::string service_account_user(std::string_view ns, std::string_view name);

}  // namespace skiff::apiserver
