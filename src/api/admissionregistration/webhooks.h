// The kinds ValidatingWebhookConfiguration and MutatingWebhookConfiguration. They are checked and
// kept; nobody calls the webhooks.
#pragma once

#include <vector>

#include "api/kind.h"

namespace skiff::api {

std::vector<Kind> admissionregistration_kinds();

}  // namespace skiff::api
