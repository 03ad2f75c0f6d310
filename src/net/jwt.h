// JSON Web Tokens (RFC 7515, 7517, 7519) with public-key signatures: ES256 and RS256, nothing else.
// What the claims mean is for others to judge.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace skiff::net {

struct SigningKey {
  std::string private_pem = {};
  std::string public_pem = {};
};
// A new ECDSA P-256 key.
Result<SigningKey> make_signing_key();

class JwtKeys {
 public:
  // The private key (P-256 or RSA of at least 2048 bits) signs. Tokens of the further public keys
  // are known too: those of keys that were in use before.
  static Result<JwtKeys> open(std::string_view private_pem,
                              const std::vector<std::string>& public_pems = {});
  JwtKeys(JwtKeys&&) noexcept;
  JwtKeys& operator=(JwtKeys&&) noexcept;
  ~JwtKeys();

  Result<std::string> sign(const json::object& claims) const;
  // The claims of a token that one of these keys signed. A token must name its key (kid), and the
  // key decides the algorithm: what the token says about it can only be right or wrong.
  Result<json::object> verify(std::string_view token) const;

  json::object key_set() const;  // {"keys": [...]}, public parts only
  std::vector<std::string> algorithms() const;

 private:
  struct Impl;
  explicit JwtKeys(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace skiff::net
