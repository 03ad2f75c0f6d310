// What the server lets in besides what a schema says: rules that look at other objects or at who
// asks (quotas, limits, pod security, service accounts, priorities). Each rule is a file here.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "apiserver/transaction.h"
#include "apiserver/writes.h"
#include "base/json.h"
#include "base/result.h"

namespace skiff::apiserver {

struct AdmissionRequest {
  Transaction& txn;  // a rule may read other objects and may write them: a quota is charged here
  const WriteRequest& request;
  json::value& object;               // defaulted and checked by its schema; may be changed
  const json::value* old = nullptr;  // null on create
  std::string now = {};
  std::function<std::string()> suffix = {};  // five random characters, as generateName adds them
  std::function<std::string()> uid = {};

  bool creates() const { return old == nullptr; }
  bool is(std::string_view resource_key) const;
  // An object of that resource itself, not one of its sub-resources.
  bool plain(std::string_view resource_key) const;
};

using Warnings = std::vector<std::string>;

// Before validation: the rules that fill the object in, each of which may refuse it too.
Result<void> admit(const AdmissionRequest& request, Warnings& warnings);
// After validation: the rules that only look, and the quota that is charged last.
Result<void> approve(const AdmissionRequest& request, Warnings& warnings);

}  // namespace skiff::apiserver
