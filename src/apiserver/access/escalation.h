// Nobody gives away rights they do not have: checks on the writing of roles and bindings.
#pragma once

#include "apiserver/access/policy.h"
#include "apiserver/writes.h"
#include "base/json.h"
#include "base/result.h"

namespace skiff::apiserver {

// kForbidden where `object` would give rights that its writer neither holds nor may give (verbs
// `escalate` on roles, `bind` on what a binding names); kNotFound where the named role is absent.
// Objects of other kinds pass. `old` is null for a new object.
Result<void> check_escalation(const Policy& policy, const WriteRequest& request,
                              const json::value& object, const json::value* old);

}  // namespace skiff::apiserver
