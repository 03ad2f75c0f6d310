// Certificates of our own: an authority, what it signs, and random secrets. All as PEM text.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace skiff::net {

struct Identity {
  std::string certificate_pem = {};
  std::string key_pem = {};
};

// A new authority with an ECDSA P-256 key.
Result<Identity> make_authority(const std::string& common_name, std::chrono::days valid);

struct ServerNames {
  std::vector<std::string> dns = {};
  std::vector<std::string> addresses = {};  // IPv4 or IPv6 numbers
};
// The certificate is for whoever is reached under these names.
Result<Identity> issue_server(const Identity& authority, const std::string& common_name,
                              const ServerNames& names, std::chrono::days valid);

// To a Kubernetes API server the common name is the user and each organization a group.
Result<Identity> issue_client(const Identity& authority, const std::string& common_name,
                              const std::vector<std::string>& organizations,
                              std::chrono::days valid);

// When the first certificate of the text ends. Renewal is the caller's.
Result<std::chrono::sys_seconds> valid_until(std::string_view certificate_pem);

// From the operating system's generator, as lower-case hex: twice as many characters as bytes.
std::string random_token(std::size_t bytes);

std::string sha256_hex(std::string_view data);

}  // namespace skiff::net
