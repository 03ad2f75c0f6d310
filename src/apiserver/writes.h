// Every change of an object: create, update, patch, delete and the sub-resources that write.
// Nothing here touches the store: a change is staged in a Transaction, so that one request, a
// controller's plan of many writes and a dry run all pass the same checks.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "apiserver/authn.h"
#include "apiserver/definitions/definitions.h"
#include "apiserver/kinds.h"
#include "apiserver/schema_gate.h"
#include "apiserver/transaction.h"
#include "base/random.h"
#include "env/env.h"

namespace skiff::apiserver {

enum class FieldValidation { kIgnore, kWarn, kStrict };

// DeleteOptions, from a body or from the query.
struct DeleteOptions {
  std::optional<std::int64_t> grace_period_s = {};
  std::string propagation = {};  // Orphan, Background, Foreground; empty: the kind's default
};

struct WriteRequest {
  Verb verb = Verb::kCreate;
  const ServedKind* kind = nullptr;
  std::string ns = {};
  std::string name = {};
  std::string subresource = {};
  json::value body = {};  // object or patch
  PatchType patch = PatchType::kMerge;
  bool force = false;    // kApply: take fields that others own
  bool applied = false;  // the managedFields of the body are what an apply has made of them
  DeleteOptions remove = {};
  // Preconditions besides those that the body carries.
  std::string uid = {};
  std::string resource_version = {};
  FieldValidation validation = FieldValidation::kWarn;
  std::vector<std::string> duplicated = {};  // sentences about keys that the body gives twice
  // The JSON of the body, where it gives keys twice. Lives as long as the request that was read.
  std::string_view text = {};
  std::vector<std::string> warnings = {};  // about the body, found while reading it
  bool dry_run = false;
  // Who asks, and the name under which their fields are managed: ?fieldManager=, else what the
  // User-Agent says before its first slash.
  Identity user = {};
  std::string manager = {};
};

struct Outcome {
  int status = 200;
  store::Key key = {};
  // The answer, where it is not simply the object under `key` after the commit.
  std::optional<json::value> answer = {};
  // The answer is the Scale of the object under `key`, which is of this kind.
  const ServedKind* scale_of = nullptr;
};

// What others have a say in. Each may be absent.
struct WriteHooks {
  // Answers requests on kinds that are never stored; nothing: this is not one.
  std::function<std::optional<Result<Outcome>>(const WriteRequest&)> answer = {};
  // Whether this user may write the object so. `old` is null for a new one.
  std::function<Result<void>(const WriteRequest&, const json::value& object,
                             const json::value* old)>
      guard = {};
  // May stage what comes with a new object.
  std::function<void(Transaction&, const WriteRequest&, const json::value& object)> created = {};
};

class Writes {
 public:
  Writes(const schema::Registry& registry, const env::Clock& clock, std::uint64_t seed)
      : gate_(registry), clock_(clock), random_(seed) {}

  Result<Outcome> run(Transaction& txn, const WriteRequest& request);
  void set_hooks(WriteHooks hooks) { hooks_ = std::move(hooks); }
  const SchemaGate& gate() const { return gate_; }
  Definitions& definitions() { return definitions_; }
  const Definitions& definitions() const { return definitions_; }

 private:
  Result<Outcome> create(Transaction& txn, const WriteRequest& request);
  Result<Outcome> update(Transaction& txn, const WriteRequest& request);
  Result<Outcome> patch(Transaction& txn, const WriteRequest& request);
  Result<Outcome> apply(Transaction& txn, const WriteRequest& request);
  Result<Outcome> remove(Transaction& txn, const WriteRequest& request);
  Result<Outcome> bind(Transaction& txn, const WriteRequest& request);
  Result<Outcome> finalize(Transaction& txn, const WriteRequest& request);
  Result<Outcome> scale(Transaction& txn, const WriteRequest& request);
  Result<Outcome> evict(Transaction& txn, const WriteRequest& request);

  // Writes `next` over `old`: metadata rules, defaults, validation, generation, no-op detection,
  // and removal where the last finalizer of a deleted object goes.
  Result<Outcome> replace(Transaction& txn, const WriteRequest& request, const json::value& old,
                          json::value next);
  // metadata.managedFields of what is about to be written; `sent` is what the body said of them.
  void record_owners(const WriteRequest& request, const json::value* old, json::value sent,
                     json::value& next) const;
  Result<void> choose_name(Transaction& txn, const WriteRequest& request, json::value& object);
  Result<void> check_unknown(const WriteRequest& request, json::value& object,
                             std::vector<std::string>& warnings) const;
  // What a kind that the server has duties for gets when it is made: finalizers, conditions.
  void prepare_new(Transaction& txn, const ServedKind& kind, json::value& object,
                   const std::string& now);
  // What the server's part of the status follows from the spec on each update.
  void follow_spec(Transaction& txn, const ServedKind& kind, json::value& object,
                   const std::string& now);
  std::string stamp() const;  // now, as metav1.Time
  std::string new_uid();
  std::string new_suffix();

  WriteHooks hooks_;
  SchemaGate gate_;
  Definitions definitions_;
  const env::Clock& clock_;
  std::mutex random_lock_;
  Random random_;
};

// Shared by the files of this folder that write.
store::Key key_of(const WriteRequest& request);
// kBadRequest where kind, apiVersion, name or namespace of the body contradict the URL; fills what
// is absent.
Result<void> match_body(const WriteRequest& request, json::value& object);
// 422: what is wrong with the metadata of an updated object, with what it changes of it, and by the
// kind's own rules.
Error invalid_update(const WriteRequest& request, const std::vector<Cause>& metadata,
                     const std::vector<Cause>& changes, const std::vector<Cause>& own);
// Names are chosen, and so checked, when an object is `created`.
std::vector<Cause> check_metadata(const ServedKind& kind, const json::value& object, bool created);
// An owner that is named twice in the same words is kept once.
void drop_doubled_owners(json::value& object, std::vector<std::string>& warnings);
// What a client should be told about good metadata.
void warn_of_metadata(const ServedKind& kind, const json::value& object, const json::value* old,
                      std::vector<std::string>& warnings);
Result<void> check_preconditions(const WriteRequest& request, const json::value& old);
// A definition that is to go is marked and held until its objects have gone. False: it is no
// definition, or marked already.
bool begin_removal(const ServedKind& kind, json::value& object, const std::string& now);
// Which names of a definition are its own, by those that are taken in its group (with its own,
// where it is stored), and whether it is served.
void accept_names(json::value& definition, const HeldNames& taken, const std::string& now);
// username and groups, as authentication.k8s.io tells them.
json::value user_info(const Identity& user);
// Copies what a pod's sub-resource is about from what the client sent: the list of ephemeral
// containers, or the resources of containers that `to` has too.
void take_pod_part(std::string_view subresource, const json::value& from, json::value& to);
// A patch that would make it another object.
Error uid_changed(const WriteRequest& request, std::string_view uid);
bool has_finalizers(const json::value& object);
// What a write of the status makes of the object: the status, and what the kind lets come with it.
json::value with_status(const ServedKind& kind, const json::value& old, const json::value& sent);
// Nothing holds a deleted object any more. A pod is also held by its agent until its grace is 0, a
// namespace by its own list of finalizers.
bool released(const ServedKind& kind, const json::value& object);

}  // namespace skiff::apiserver
