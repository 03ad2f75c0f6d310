#include "apiserver/access/authorizer.h"

#include <fmt/format.h>

#include <algorithm>

#include "apiserver/status.h"

namespace skiff::apiserver {
namespace {

constexpr std::string_view kRoleKeys[] = {"clusterroles.rbac.authorization.k8s.io",
                                          "roles.rbac.authorization.k8s.io"};
constexpr std::string_view kBindingKeys[] = {"clusterrolebindings.rbac.authorization.k8s.io",
                                             "rolebindings.rbac.authorization.k8s.io"};

// Health and version are for everybody: load balancers and clients that look for a server.
bool open_path(const Action& action) {
  constexpr std::string_view kOpen[] = {"/healthz", "/livez", "/readyz", "/version"};
  return action.on_path && (action.verb == "get" || action.verb == "head") &&
         std::ranges::any_of(kOpen, [&](std::string_view open) {
           return action.path == open ||
                  (action.path.starts_with(open) && action.path[open.size()] == '/');
         });
}

// A name that a client chose must not look like HTML in a browser that shows the answer.
std::string without_markup(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else {
      out += c;
    }
  }
  return out;
}

// The value that `cache` has of this entry, or a new one made by `make`.
template <class Cache, class Make>
auto read_through(Cache& old, Cache& next, const store::Entry& entry, Make&& make) {
  auto at = old.find(entry.key());
  auto& slot = next[entry.key()];
  if (at != old.end() && at->second.revision == entry.revision()) {
    slot = at->second;
  } else {
    slot.revision = entry.revision();
    slot.value = make(*entry.value());
  }
  return slot.value;
}

}  // namespace

Authorizer::Authorizer(store::Store& store) : store_(store) {
  std::size_t at = 0;
  for (const auto& keys : {kRoleKeys, kBindingKeys}) {
    for (std::size_t i = 0; i < 2; ++i) {
      subscriptions_[at++] =
          store_.subscribe(keys[i], store::Horizon::kCommitted, [this] { ++changes_; });
    }
  }
}

std::shared_ptr<const Policy> Authorizer::policy() const {
  if (drawn_.load() != changes_.load()) {
    const std::lock_guard drawing(draw_lock_);
    const std::uint64_t seen = changes_.load();
    if (drawn_.load() != seen) {
      auto next = draw();
      const std::lock_guard guard(lock_);
      policy_ = std::move(next);
      drawn_ = seen;
    }
  }
  const std::lock_guard guard(lock_);
  return policy_;
}

std::shared_ptr<const Policy> Authorizer::draw() const {
  Roles roles;
  std::map<store::Key, Read<std::vector<Rule>>> read_roles;
  for (std::string_view key : kRoleKeys) {
    for (const store::EntryPtr& entry : store_.list(key).entries) {
      roles[{entry->key().ns, entry->key().name}] =
          read_through(roles_, read_roles, *entry, [](const json::value& role) {
            return std::make_shared<const std::vector<Rule>>(rules_of(role));
          });
    }
  }
  std::vector<std::shared_ptr<const Binding>> bindings;
  std::map<store::Key, Read<Binding>> read_bindings;
  for (std::string_view key : kBindingKeys) {
    for (const store::EntryPtr& entry : store_.list(key).entries) {
      bindings.push_back(
          read_through(bindings_, read_bindings, *entry, [](const json::value& binding) {
            return std::make_shared<const Binding>(binding_of(binding));
          }));
    }
  }
  roles_ = std::move(read_roles);
  bindings_ = std::move(read_bindings);
  return std::make_shared<const Policy>(std::move(roles), bindings);
}

Decision Authorizer::decide(const Identity& who, const Action& action) const {
  if (who.member_of(kMasters) || open_path(action)) return {.allowed = true};
  return policy()->decide(who, action);
}

Result<void> Authorizer::authorize(const Identity& who, const Action& action) const {
  const Decision decision = decide(who, action);
  if (decision.allowed) return {};
  return std::unexpected(forbidden_action(who, action, decision.reason));
}

Error forbidden_action(const Identity& who, const Action& action, std::string_view reason) {
  std::string why;
  if (action.on_path) {
    why = fmt::format("User {} cannot {} path {}", in_quotes(who.user), action.verb,
                      in_quotes(action.path));
  } else {
    why = fmt::format(
        "User {} cannot {} resource {} in API group {} {}", in_quotes(who.user), action.verb,
        in_quotes(action.combined()), in_quotes(action.group),
        action.ns.empty() ? "at the cluster scope" : "in the namespace " + in_quotes(action.ns));
  }
  why = without_markup(why);
  if (!reason.empty()) why += fmt::format(": {}", reason);
  if (action.on_path) return {.code = Code::kForbidden, .message = "forbidden: " + why};
  return forbidden({.group = action.group, .plural = action.resource}, action.name, why);
}

}  // namespace skiff::apiserver
