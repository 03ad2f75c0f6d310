// Tokens: none that we did not sign is believed, however it looks. The input is a token, claims to
// be signed, and a place of a good token with what to put there.
#include "base/fuzz.h"
#include "base/json.h"
#include "net/jwt.h"

namespace {

using namespace skiff;

const net::JwtKeys& keys() {
  static const net::JwtKeys kKeys = [] {
    auto made = net::make_signing_key();
    SKIFF_CHECK(made.has_value(), "a key can be made");
    auto opened = net::JwtKeys::open(made->private_pem);
    SKIFF_CHECK(opened.has_value(), "and used");
    return std::move(*opened);
  }();
  return kKeys;
}

json::object good_claims() { return {{"iss", "a"}, {"sub", "b"}, {"exp", 1}}; }

const std::string& good_token() {
  static const std::string kToken = [] {
    auto token = keys().sign(good_claims());
    SKIFF_CHECK(token.has_value(), "claims can be signed");
    return *token;
  }();
  return kToken;
}

}  // namespace

SKIFF_FUZZ(text) {
  if (text.empty()) return;
  SKIFF_CHECK(!keys().verify(text), "nobody can guess a signature");
  const auto place = static_cast<unsigned char>(text.front()) * std::size_t{3};
  if (place < good_token().size()) {
    std::string forged = good_token();
    forged.replace(place, 1, text.substr(1));
    const auto claims = keys().verify(forged);
    // Spare bits of the last letter may differ; they are no part of what is signed.
    SKIFF_CHECK(!claims || json::serialize(*claims) == json::serialize(good_claims()),
                "a changed token is refused: " + forged);
  }
  // The head and the claims of the attacker's choice with a good signature of something else.
  const std::string signature = good_token().substr(good_token().rfind('.'));
  SKIFF_CHECK(!keys().verify(std::string(text) + signature), "a signature signs one text only");
  if (const auto claims = json::parse(text); claims && claims->is_object()) {
    const auto token = keys().sign(claims->as_object());
    if (!token) return;
    const auto verified = keys().verify(*token);
    SKIFF_CHECK(verified && json::serialize(*verified) == json::serialize(*claims),
                "what was signed is what is verified");
  }
}
