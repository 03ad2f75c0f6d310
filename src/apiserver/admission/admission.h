// What the server lets in besides what a schema says: rules that look at other objects or at who
// asks (quotas, limits, pod security, service accounts, priorities). Each rule is a file here.
#pragma once

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
};

// In order: rules that change the object, then rules that refuse it.
Result<void> admit(AdmissionRequest request, std::vector<std::string>& warnings);

}  // namespace skiff::apiserver
