// The text that bootstrap_policy.cc reads; its form is told there where it stands.
#pragma once

#include <string_view>

namespace skiff::apiserver {

std::string_view bootstrap_roles();

}  // namespace skiff::apiserver
