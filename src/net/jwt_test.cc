#include "net/jwt.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>

#include <algorithm>

#include "base/base64.h"
#include "base/strings.h"
#include "net/openssl.h"

namespace skiff::net {
namespace {

std::string encode(std::string_view bytes) {
  std::string out = base64::encode(bytes);
  while (out.ends_with('=')) out.pop_back();
  std::ranges::replace(out, '+', '-');
  std::ranges::replace(out, '/', '_');
  return out;
}

std::string decode(std::string text) {
  std::ranges::replace(text, '-', '+');
  std::ranges::replace(text, '_', '/');
  while (text.size() % 4 != 0) text += '=';
  return base64::decode(text).value_or("");
}

SigningKey rsa_key(unsigned bits) {
  const Key key(EVP_RSA_gen(bits));
  const auto text = [](auto&& write) {
    const Bio bio(BIO_new(BIO_s_mem()));
    write(bio.get());
    char* data = nullptr;
    const long size = BIO_get_mem_data(bio.get(), &data);
    return std::string(data, static_cast<std::size_t>(size));
  };
  return {text([&](BIO* bio) {
            PEM_write_bio_PKCS8PrivateKey(bio, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
          }),
          text([&](BIO* bio) { PEM_write_bio_PUBKEY(bio, key.get()); })};
}

// One key for all tests, a token of it in its three parts, and what an attacker may know.
class Jwt : public ::testing::Test {
 protected:
  static std::vector<std::string> parts_of(const std::string& whole) {
    std::vector<std::string> out;
    for (std::string_view part : split(whole, '.')) out.emplace_back(part);
    return out;
  }
  std::string refusal(const std::string& given) const {
    const auto claims = keys->verify(given);
    if (claims) return "accepted";
    EXPECT_EQ(claims.error().code, Code::kUnauthorized);
    return claims.error().message;
  }
  std::string with_header(const json::object& header) const {
    return encode(json::serialize(header)) + "." + parts[1];
  }

  SigningKey pair = *make_signing_key();
  Result<JwtKeys> keys = JwtKeys::open(pair.private_pem);
  std::string token = *keys->sign({{"sub", "me"}, {"n", 7}});
  std::vector<std::string> parts = parts_of(token);
  std::string kid = std::string(json::get_string(*json::parse(decode(parts[0])), {"kid"}));
};

TEST_F(Jwt, GivesBackTheClaimsItSigned) {
  const auto claims = keys->verify(token);
  ASSERT_TRUE(claims) << claims.error().message;
  EXPECT_EQ(json::serialize(*claims), R"({"sub":"me","n":7})");
}

TEST_F(Jwt, NamesItsAlgorithmAndKeyInTheHeader) {
  const auto header = json::parse(decode(parts[0]));
  EXPECT_EQ(json::get_string(*header, {"alg"}), "ES256");
  EXPECT_EQ(kid.size(), 43u) << "a SHA-256 in base64url";
  EXPECT_EQ(decode(parts[2]).size(), 64u) << "two numbers, not DER";
}

TEST_F(Jwt, PublishesOnlyThePublicPart) {
  const json::object set = keys->key_set();
  const json::object& key = set.at("keys").as_array().at(0).as_object();
  EXPECT_EQ(key.at("kid"), json::value(json::string(kid)));
  EXPECT_EQ(key.at("crv"), "P-256");
  EXPECT_EQ(decode(std::string(key.at("x").as_string())).size(), 32u);
  EXPECT_EQ(decode(std::string(key.at("y").as_string())).size(), 32u);
  EXPECT_FALSE(key.contains("d"));
  EXPECT_EQ(keys->algorithms(), std::vector<std::string>{"ES256"});
}

TEST_F(Jwt, RefusesTheAlgorithmNone) {
  for (const char* none : {"none", "None", "NONE", ""}) {
    const std::string text = with_header({{"alg", none}, {"kid", json::string(kid)}});
    EXPECT_EQ(refusal(text + "."), "the token's algorithm is not its key's") << none;
    EXPECT_EQ(refusal(text + "." + parts[2]), "the token's algorithm is not its key's") << none;
  }
  EXPECT_EQ(refusal(with_header({{"kid", json::string(kid)}}) + "." + parts[2]),
            "the token's algorithm is not its key's");
}

TEST_F(Jwt, RefusesAMacMadeWithThePublicKey) {
  const std::string text = with_header({{"alg", "HS256"}, {"kid", json::string(kid)}});
  std::array<unsigned char, EVP_MAX_MD_SIZE> mac{};
  unsigned size = 0;
  HMAC(EVP_sha256(), pair.public_pem.data(), static_cast<int>(pair.public_pem.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), mac.data(), &size);
  const std::string forged =
      text + "." + encode({reinterpret_cast<char*>(mac.data()), std::size_t{size}});
  EXPECT_EQ(refusal(forged), "the token's algorithm is not its key's");
}

TEST_F(Jwt, RefusesAnAlgorithmOfAnotherKindOfKey) {
  for (const char* other : {"RS256", "ES384", "PS256", "es256"}) {
    const std::string text = with_header({{"alg", other}, {"kid", json::string(kid)}});
    EXPECT_EQ(refusal(text + "." + parts[2]), "the token's algorithm is not its key's") << other;
  }
}

TEST_F(Jwt, RefusesAKeyItDoesNotKnow) {
  const auto other = JwtKeys::open(make_signing_key()->private_pem);
  EXPECT_EQ(refusal(*other->sign({{"sub", "me"}})), "invalid signature, no keys found");
  EXPECT_EQ(refusal(with_header({{"alg", "ES256"}}) + "." + parts[2]),
            "invalid signature, no keys found")
      << "a token that names no key";
  EXPECT_EQ(refusal(with_header({{"alg", "ES256"}, {"kid", 7}}) + "." + parts[2]),
            "invalid signature, no keys found");
}

TEST_F(Jwt, RefusesAForeignSignatureUnderItsOwnKeyName) {
  const auto other = JwtKeys::open(make_signing_key()->private_pem);
  const std::vector<std::string> theirs = parts_of(*other->sign({{"sub", "me"}, {"n", 7}}));
  EXPECT_EQ(refusal(parts[0] + "." + parts[1] + "." + theirs[2]), "the token's signature is wrong");
}

TEST_F(Jwt, IgnoresAKeyThatTheTokenBringsAlong) {
  const auto other = JwtKeys::open(make_signing_key()->private_pem);
  const json::value jwk = other->key_set().at("keys").as_array().at(0);
  const std::vector<std::string> theirs = parts_of(*other->sign({{"sub", "root"}}));
  const std::string text = encode(json::serialize(json::object{
                               {"alg", "ES256"}, {"kid", json::string(kid)}, {"jwk", jwk}})) +
                           "." + theirs[1];
  EXPECT_EQ(refusal(text + "." + theirs[2]), "the token's signature is wrong");
}

TEST_F(Jwt, RefusesChangedClaims) {
  const std::string claims = encode(R"({"sub":"root","n":7})");
  EXPECT_EQ(refusal(parts[0] + "." + claims + "." + parts[2]), "the token's signature is wrong");
}

TEST_F(Jwt, RefusesAChangedHeader) {
  const std::string text =
      with_header({{"alg", "ES256"}, {"kid", json::string(kid)}, {"typ", "JWT"}});
  EXPECT_EQ(refusal(text + "." + parts[2]), "the token's signature is wrong");
}

TEST_F(Jwt, RefusesSignaturesOfNothing) {
  for (const std::string& empty :
       {std::string(), std::string(64, '\0'), std::string(63, 'a'), std::string(65, 'a'),
        std::string(64, '\xff'), std::string(1, '\0')}) {
    EXPECT_EQ(refusal(parts[0] + "." + parts[1] + "." + encode(empty)),
              "the token's signature is wrong")
        << empty.size();
  }
}

TEST_F(Jwt, RefusesExtensionsThatMustBeUnderstood) {
  const std::string text = with_header(
      {{"alg", "ES256"}, {"kid", json::string(kid)}, {"crit", json::array{"b64"}}, {"b64", false}});
  EXPECT_EQ(refusal(text + "." + parts[2]), "the token's header has extensions");
}

TEST_F(Jwt, RefusesOtherSpellingsOfTheSameBytes) {
  EXPECT_EQ(refusal(token + "="), "the token is not base64url");
  EXPECT_EQ(refusal(token + "\n"), "the token is not base64url");
  std::string spare = token;
  // The last of 86 characters carries four bits that mean nothing.
  const std::string alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  spare.back() = alphabet[alphabet.find(spare.back()) ^ 1];
  EXPECT_EQ(refusal(spare), "the token is not base64url");
}

TEST_F(Jwt, RefusesWhatIsNoToken) {
  for (const std::string& junk :
       {std::string(), std::string("."), std::string(".."), std::string("..."), parts[0],
        parts[0] + "." + parts[1], token + ".", "." + token, token + "." + parts[2],
        std::string("a.b.c"), std::string("!.!.!"), encode("[]") + "." + parts[1] + "." + parts[2],
        encode("{") + "." + parts[1] + "." + parts[2], std::string(20000, 'a'),
        std::string("\0.\0.\0", 5)}) {
    EXPECT_NE(refusal(junk), "accepted") << junk.substr(0, 40);
  }
}

TEST_F(Jwt, KnowsTheTokensOfAnOlderKey) {
  const SigningKey next = *make_signing_key();
  const auto both = JwtKeys::open(next.private_pem, {pair.public_pem});
  ASSERT_TRUE(both);
  EXPECT_TRUE(both->verify(token));
  EXPECT_TRUE(both->verify(*both->sign({{"a", 1}})));
  EXPECT_FALSE(keys->verify(*both->sign({{"a", 1}}))) << "the new key signs";
  EXPECT_EQ(both->key_set().at("keys").as_array().size(), 2u);
}

TEST_F(Jwt, SignsWithRsaWhereThatIsTheKey) {
  const auto rsa = JwtKeys::open(rsa_key(2048).private_pem, {pair.public_pem});
  ASSERT_TRUE(rsa) << rsa.error().message;
  const std::string signed_token = *rsa->sign({{"sub", "me"}});
  EXPECT_TRUE(rsa->verify(signed_token));
  EXPECT_EQ(json::get_string(*json::parse(decode(parts_of(signed_token)[0])), {"alg"}), "RS256");
  EXPECT_EQ(rsa->algorithms(), (std::vector<std::string>{"ES256", "RS256"}));
  const json::value set = rsa->key_set();
  EXPECT_EQ(set.at("keys").at(0).at("e"), "AQAB");
}

TEST_F(Jwt, RefusesKeysThatAreTooWeakOrOfAnotherKind) {
  const auto weak = JwtKeys::open(rsa_key(1024).private_pem);
  ASSERT_FALSE(weak);
  EXPECT_EQ(weak.error().code, Code::kInvalid);
  EXPECT_FALSE(JwtKeys::open("no key"));
  EXPECT_FALSE(JwtKeys::open(pair.private_pem, {"no key"}));
}

}  // namespace
}  // namespace skiff::net
