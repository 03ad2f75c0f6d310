// Acting as somebody else: the Impersonate-* headers.
#pragma once

#include "apiserver/access/policy.h"
#include "apiserver/authn.h"
#include "base/http.h"
#include "base/result.h"

namespace skiff::apiserver {

// Whether the request asks for it at all.
bool impersonates(const http::Headers& headers);

// Who the requester becomes. kForbidden where a part of that identity is not theirs to take;
// kInternal, as the real server says it, where headers name groups but no user.
Result<Identity> impersonate(const Policy& policy, const Identity& requester,
                             const http::Headers& headers);

// "system:serviceaccount:NS:NAME" taken apart; false where the user is no service account.
bool split_service_account(std::string_view user, std::string& ns, std::string& name);

}  // namespace skiff::apiserver
