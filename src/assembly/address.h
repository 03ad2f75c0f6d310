// ADDRESS:PORT as users write it, and the URL of a listener.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace skiff::assembly {

struct Address {
  std::string host;
  std::uint16_t port = 0;
};

// `option` is the flag that the error names.
Result<Address> parse_address(const std::string& option, const std::string& text);
bool loopback(const std::string& host);
std::string url(const char* scheme, const std::string& host, std::uint16_t port);

}  // namespace skiff::assembly
