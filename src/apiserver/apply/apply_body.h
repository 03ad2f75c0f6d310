// What comes with a patch besides the object: fieldManager and force; and the body of an apply,
// which is YAML or JSON.
#pragma once

#include "apiserver/writes.h"
#include "base/http.h"

namespace skiff::apiserver {

// 422 as the real server refuses PatchOptions.
Result<void> read_patch_options(const http::Url& url, WriteRequest& write);
// A key given twice is let through, named or refused, as fieldValidation says.
Result<void> read_apply_body(const http::Request& request, WriteRequest& write);

}  // namespace skiff::apiserver
