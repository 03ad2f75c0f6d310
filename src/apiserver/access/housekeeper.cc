#include "apiserver/access/housekeeper.h"

#include <utility>

#include "api/meta.h"
#include "apiserver/access/aggregation.h"
#include "base/base64.h"

namespace skiff::apiserver {
namespace {

constexpr std::string_view kRolesKey = "clusterroles.rbac.authorization.k8s.io";
constexpr std::string_view kAuthorityMap = "kube-root-ca.crt";
constexpr std::string_view kTokenType = "kubernetes.io/service-account-token";
constexpr std::string_view kAccountName = "kubernetes.io/service-account.name";
constexpr std::string_view kAccountUid = "kubernetes.io/service-account.uid";

store::Key account_key(const std::string& ns) {
  return {.resource = "serviceaccounts", .ns = ns, .name = "default"};
}

store::Key authority_key(const std::string& ns) {
  return {.resource = "configmaps", .ns = ns, .name = std::string(kAuthorityMap)};
}

json::value authority_map(const std::string& certificate) {
  return json::object{
      {"metadata",
       {{"name", json::string(kAuthorityMap)},
        {"annotations",
         {{"kubernetes.io/description",
           "Contains a CA bundle that can be used to verify the kube-apiserver when using internal "
           "endpoints such as the internal service IP or kubernetes.default.svc. No other usage is "
           "guaranteed across distributions of Kubernetes clusters."}}}}},
      {"data", {{"ca.crt", json::string(certificate)}}}};
}

}  // namespace

Housekeeper::Housekeeper(store::Store& store, Writes& writes, const ServiceTokens& tokens,
                         std::string authority, Kinds kinds, Commit commit)
    : store_(store),
      writes_(writes),
      tokens_(tokens),
      authority_(std::move(authority)),
      kinds_(std::move(kinds)),
      commit_(std::move(commit)),
      namespaces_(store, "namespaces"),
      accounts_(store, "serviceaccounts"),
      config_maps_(store, "configmaps"),
      secrets_(store, "secrets"),
      roles_(store, std::string(kRolesKey)) {}

bool Housekeeper::pass() {
  const std::lock_guard guard(lock_);
  look();
  bool did = gather();
  for (const std::string& ns : std::exchange(stale_namespaces_, {})) {
    if (keep_namespace(ns)) did = true;
  }
  for (const store::Key& key : std::exchange(stale_secrets_, {})) {
    if (keep_secret(key)) did = true;
  }
  return did;
}

void Housekeeper::look() {
  if (!roles_.take().keys.empty()) roles_changed_ = true;
  const ChangeFeed::Changes namespaces = namespaces_.take();
  for (const store::Key& key : namespaces.keys) stale_namespaces_.insert(key.name);
  const ChangeFeed::Changes accounts = accounts_.take();
  const ChangeFeed::Changes maps = config_maps_.take();
  for (const auto* changes : {&accounts, &maps}) {
    for (const store::Key& key : changes->keys) {
      if (key == account_key(key.ns) || key == authority_key(key.ns)) {
        stale_namespaces_.insert(key.ns);
      }
    }
    if (!changes->anew) continue;
    for (const store::EntryPtr& entry : store_.list("namespaces").entries) {
      stale_namespaces_.insert(entry->key().name);
    }
  }
  for (const store::Key& key : secrets_.take().keys) {
    const store::EntryPtr entry = store_.get(key);
    // Most secrets are no tokens, and need not be read to see that.
    if (entry && entry->text().view().contains(kTokenType) &&
        json::get_string(*entry->value(), {"type"}) == kTokenType) {
      token_secrets_.insert(key);
      stale_secrets_.insert(key);
    } else {
      token_secrets_.erase(key);
    }
  }
  if (accounts.keys.empty() || token_secrets_.empty()) return;
  std::set<std::string> touched;
  for (const store::Key& key : accounts.keys) touched.insert(key.ns);
  for (const store::Key& key : token_secrets_) {
    if (touched.contains(key.ns)) stale_secrets_.insert(key);
  }
}

bool Housekeeper::stage(Transaction& txn, WriteRequest request, std::string_view resource) const {
  const auto table = kinds_();
  request.kind = table->by_key(resource);
  if (request.kind == nullptr) return false;
  request.validation = FieldValidation::kIgnore;
  request.user = {.user = "system:skiff", .groups = {std::string(kMasters)}};
  if (request.manager.empty()) request.manager = "skiff";
  return static_cast<bool>(writes_.run(txn, request));
}

bool Housekeeper::commit(Transaction& txn) const {
  return txn.changes() && commit_(txn, store::Sync::kSynced);
}

void Housekeeper::furnish(Transaction& txn, const std::string& ns) {
  if (txn.get(account_key(ns)) == nullptr) {
    stage(txn,
          {.verb = Verb::kCreate,
           .ns = ns,
           .body = json::object{{"metadata", {{"name", "default"}}}}},
          "serviceaccounts");
  }
  if (authority_.empty()) return;
  const Object map = txn.get(authority_key(ns));
  if (map == nullptr) {
    stage(txn, {.verb = Verb::kCreate, .ns = ns, .body = authority_map(authority_)}, "configmaps");
  } else if (json::get_string(*map, {"data", "ca.crt"}) != authority_ ||
             json::get_object(*map, {"data"}).size() != 1) {
    stage(
        txn,
        {.verb = Verb::kPatch,
         .ns = ns,
         .name = std::string(kAuthorityMap),
         .body = json::array{json::object{
             {"op", "add"}, {"path", "/data"}, {"value", {{"ca.crt", json::string(authority_)}}}}},
         .patch = PatchType::kJson},
        "configmaps");
  }
}

bool Housekeeper::keep_namespace(const std::string& ns) {
  Transaction txn(store_);
  const Object object = txn.get({.resource = "namespaces", .name = ns});
  if (object == nullptr || api::deleting(*object)) return false;
  furnish(txn, ns);
  if (!txn.changes()) return false;
  if (commit(txn)) return true;
  stale_namespaces_.insert(ns);  // somebody was quicker, or the disk refuses: look again
  return false;
}

bool Housekeeper::gather() {
  if (!std::exchange(roles_changed_, false)) return false;
  std::vector<Object> roles;
  for (const store::EntryPtr& entry : store_.list(kRolesKey).entries) {
    roles.push_back(entry->value());
  }
  bool did = false;
  for (const auto& [name, rules] : gathered_rules(roles)) {
    Transaction txn(store_);
    stage(txn,
          {.verb = Verb::kPatch,
           .name = name,
           .body = json::object{{"apiVersion", "rbac.authorization.k8s.io/v1"},
                                {"kind", "ClusterRole"},
                                {"metadata", {{"name", json::string(name)}}},
                                {"rules", to_json(rules)}},
           .patch = PatchType::kApply,
           .force = true,
           .manager = "clusterrole-aggregation-controller"},
          kRolesKey);
    if (commit(txn)) {
      did = true;
    } else if (txn.changes()) {
      roles_changed_ = true;
    }
  }
  return did;
}

bool Housekeeper::keep_secret(const store::Key& key) {
  if (!tokens_.available()) return false;
  Transaction txn(store_);
  const Object secret = txn.get(key);
  if (secret == nullptr || api::deleting(*secret)) return false;
  const std::string account(api::annotation(*secret, kAccountName));
  const std::string_view uid = api::annotation(*secret, kAccountUid);
  const Object holder =
      account.empty() ? nullptr
                      : txn.get({.resource = "serviceaccounts", .ns = key.ns, .name = account});
  if (holder == nullptr || (!uid.empty() && uid != api::uid(*holder))) {
    // The account has gone, or is another of the same name: its tokens go with it.
    stage(txn, {.verb = Verb::kDelete, .ns = key.ns, .name = key.name}, "secrets");
  } else {
    json::object data;
    const auto keep = [&](std::string_view name, const std::string& text) {
      if (!text.empty() && json::get_string(*secret, {"data", name}) != base64::encode(text)) {
        data[name] = base64::encode(text);
      }
    };
    keep("namespace", key.ns);
    keep("ca.crt", authority_);
    if (json::get_string(*secret, {"data", "token"}).empty()) {
      if (auto token = tokens_.mint_for_secret(*holder, key.name)) keep("token", *token);
    }
    if (data.empty() && !uid.empty()) return false;
    stage(
        txn,
        {.verb = Verb::kPatch,
         .ns = key.ns,
         .name = key.name,
         .body = json::object{{"metadata",
                               {{"annotations",
                                 {{json::string(kAccountUid), json::string(api::uid(*holder))}}}}},
                              {"data", std::move(data)}},
         .patch = PatchType::kMerge},
        "secrets");
  }
  if (!txn.changes()) return false;
  if (commit(txn)) return true;
  stale_secrets_.insert(key);
  return false;
}

}  // namespace skiff::apiserver
