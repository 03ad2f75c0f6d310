#include "apiserver/upkeep/compaction.h"

#include <utility>

#include "apiserver/server.h"

namespace skiff::apiserver {
namespace {

const api::Resource& leases() {
  static const api::Resource kLeases{
      .group = "coordination.k8s.io", .version = "v1", .plural = "leases", .kind = "Lease"};
  return kLeases;
}

}  // namespace

bool Compaction::due(Duration elapsed) const {
  const std::lock_guard guard(lock_);
  return marks_.empty() || elapsed - marks_.back().at >= kBetweenMarks;
}

void Compaction::mark(Duration elapsed, store::Revision revision) {
  const std::lock_guard guard(lock_);
  marks_.push_back({.at = elapsed, .revision = revision});
  while (elapsed - marks_.front().at >= kKept) {
    oldest_ = marks_.front().revision;
    marks_.pop_front();
  }
}

std::optional<store::Revision> Compaction::old_news(Duration elapsed, store::Revision revision) {
  const std::lock_guard guard(lock_);
  if (elapsed - recent_.at < kRecent) return std::nullopt;
  return std::exchange(recent_, {.at = elapsed, .revision = revision}).revision;
}

json::value identity_lease(Time now) {
  return json::object{{"metadata",
                       {{"name", json::string(kIdentityLease)},
                        {"labels", {{"apiserver.kubernetes.io/identity", "kube-apiserver"}}}}},
                      {"spec",
                       {{"holderIdentity", json::string(kIdentityLease)},
                        {"leaseDurationSeconds", 3600},
                        {"renewTime", rfc3339_micro(now)}}}};
}

void Server::tick() {
  watches_.tick();
  const Duration elapsed = clock_.elapsed();
  if (const auto old = compaction_.old_news(elapsed, store_.revision())) {
    store_.forget_history(*old);
  }
  cold_storage_.tick(store_, clock_);
  if (!compaction_.due(elapsed)) return;
  if (kinds()->by_key(leases().key()) != nullptr) {
    const bool known = store_.get({.resource = leases().key(),
                                   .ns = "kube-system",
                                   .name = std::string(kIdentityLease)}) != nullptr;
    // Where the disk refuses it, there is nothing new to be forgotten either.
    transact({{.verb = known ? client::Verb::kMergePatch : client::Verb::kCreate,
               .resource = leases(),
               .ns = "kube-system",
               .name = known ? std::string(kIdentityLease) : std::string(),
               .body = identity_lease(clock_.now()),
               .field_manager = "kube-apiserver"}});
  }
  compaction_.mark(elapsed, store_.revision());
}

}  // namespace skiff::apiserver
