// The kinds of authorization.k8s.io: questions about who may do what. They are never stored.
#pragma once

#include "api/kind.h"

namespace skiff::api {

Kind subject_access_review_kind();
Kind self_subject_access_review_kind();
Kind local_subject_access_review_kind();
Kind self_subject_rules_review_kind();

}  // namespace skiff::api
