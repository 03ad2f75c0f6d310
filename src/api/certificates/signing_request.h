// The kind CertificateSigningRequest. Requests are kept, approved and denied; nobody here signs.
#pragma once

#include <vector>

#include "api/kind.h"

namespace skiff::api {

std::vector<Kind> certificates_kinds();

}  // namespace skiff::api
