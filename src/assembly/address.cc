#include "assembly/address.h"

#include <fmt/format.h>

#include <cstdlib>

namespace skiff::assembly {

Result<Address> parse_address(const std::string& option, const std::string& text) {
  const std::size_t colon = text.rfind(':');
  char* end = nullptr;
  const char* digits = colon == std::string::npos ? "" : text.c_str() + colon + 1;
  const unsigned long port = std::strtoul(digits, &end, 10);
  if (colon == std::string::npos || *digits == 0 || *end != 0 || port > 65535) {
    return fail(Code::kBadRequest,
                fmt::format("{} {}: write ADDRESS:PORT, e.g. 127.0.0.1:7443", option, text));
  }
  std::string host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return Address{host.empty() ? "0.0.0.0" : host, static_cast<std::uint16_t>(port)};
}

bool loopback(const std::string& host) { return host.starts_with("127.") || host == "::1"; }

std::string url(const char* scheme, const std::string& host, std::uint16_t port) {
  const bool any = host == "0.0.0.0" || host == "::";
  const std::string name = any ? "127.0.0.1" : host.contains(':') ? "[" + host + "]" : host;
  return fmt::format("{}://{}:{}", scheme, name, port);
}

}  // namespace skiff::assembly
