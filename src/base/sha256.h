// SHA-256, for names that other servers must come to as well. Secrets are net/'s business.
#pragma once

#include <string>
#include <string_view>

namespace skiff {

// 32 bytes.
std::string sha256(std::string_view data);

}  // namespace skiff
