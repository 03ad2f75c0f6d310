// The kinds of authentication.k8s.io: questions about who somebody is. They are never stored.
#pragma once

#include "api/kind.h"

namespace skiff::api {

Kind token_review_kind();
Kind self_subject_review_kind();

}  // namespace skiff::api
