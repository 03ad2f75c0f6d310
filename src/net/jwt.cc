#include "net/jwt.h"

#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/base64.h"
#include "base/strings.h"
#include "net/openssl.h"

namespace skiff::net {
namespace {

// Far more than any claims of ours; headers of 8 KiB are the usual limit.
constexpr std::size_t kTokenBytes = 16 * 1024;
constexpr int kLeastRsaBits = 2048;
constexpr std::size_t kP256Bytes = 32;

using Context = Owned<EVP_MD_CTX, EVP_MD_CTX_free>;
using Number = Owned<BIGNUM, BN_free>;
using EcSignature = Owned<ECDSA_SIG, ECDSA_SIG_free>;

std::string url_encode(std::string_view bytes) {
  std::string out = base64::encode(bytes);
  while (out.ends_with('=')) out.pop_back();
  std::ranges::replace(out, '+', '-');
  std::ranges::replace(out, '/', '_');
  return out;
}

// One text per value: padding, the other alphabet, white space and spare bits are refused.
std::optional<std::string> url_decode(std::string_view text) {
  if (text.find_first_of("+/=\r\n") != std::string_view::npos) return {};
  std::string standard(text);
  std::ranges::replace(standard, '-', '+');
  std::ranges::replace(standard, '_', '/');
  while (standard.size() % 4 != 0) standard += '=';
  auto out = base64::decode(standard);
  if (!out || url_encode(*out) != text) return {};
  return out;
}

std::unexpected<Error> jwt_failed(std::string_view what) {
  return fail(Code::kInternal, "could not " + std::string(what) + ": " + openssl_complaint());
}

std::unexpected<Error> refused(std::string_view why) {
  return fail(Code::kUnauthorized, std::string(why));
}

// Empty: a key we do not sign or verify with.
std::string algorithm_of(const EVP_PKEY* key) {
  if (EVP_PKEY_is_a(key, "RSA") == 1 && EVP_PKEY_get_bits(key) >= kLeastRsaBits) return "RS256";
  std::array<char, 64> curve{};
  if (EVP_PKEY_is_a(key, "EC") == 1 &&
      EVP_PKEY_get_group_name(key, curve.data(), curve.size(), nullptr) == 1 &&
      std::string_view(curve.data()) == "prime256v1") {
    return "ES256";
  }
  return {};
}

std::string der_of(const EVP_PKEY* key) {
  unsigned char* bytes = nullptr;
  const int size = i2d_PUBKEY(key, &bytes);
  if (size <= 0) return {};
  std::string out(reinterpret_cast<char*>(bytes), static_cast<std::size_t>(size));
  OPENSSL_free(bytes);
  return out;
}

// As the real server names its keys: a hash that does not give the key away.
std::string key_id(const EVP_PKEY* key) {
  const std::string der = der_of(key);
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(der.data()), der.size(), digest.data());
  return url_encode({reinterpret_cast<char*>(digest.data()), digest.size()});
}

std::string number_text(const EVP_PKEY* key, const char* name, std::size_t least_bytes) {
  BIGNUM* read = nullptr;
  if (EVP_PKEY_get_bn_param(key, name, &read) != 1) return {};
  const Number number(read);
  const std::size_t size =
      std::max<std::size_t>(least_bytes, static_cast<std::size_t>(BN_num_bytes(read)));
  std::string bytes(size, '\0');
  BN_bn2binpad(read, reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(size));
  return url_encode(bytes);
}

// ECDSA in tokens is two numbers of fixed size; OpenSSL speaks DER.
std::optional<std::string> from_der(std::string_view der) {
  const auto* at = reinterpret_cast<const unsigned char*>(der.data());
  const EcSignature signature(d2i_ECDSA_SIG(nullptr, &at, static_cast<long>(der.size())));
  if (!signature) return {};
  std::string out(2 * kP256Bytes, '\0');
  auto* bytes = reinterpret_cast<unsigned char*>(out.data());
  BN_bn2binpad(ECDSA_SIG_get0_r(signature.get()), bytes, kP256Bytes);
  BN_bn2binpad(ECDSA_SIG_get0_s(signature.get()), bytes + kP256Bytes, kP256Bytes);
  return out;
}

std::optional<std::string> to_der(std::string_view raw) {
  if (raw.size() != 2 * kP256Bytes) return {};
  const auto* bytes = reinterpret_cast<const unsigned char*>(raw.data());
  Number r(BN_bin2bn(bytes, kP256Bytes, nullptr));
  Number s(BN_bin2bn(bytes + kP256Bytes, kP256Bytes, nullptr));
  const EcSignature signature(ECDSA_SIG_new());
  if (!r || !s || !signature || ECDSA_SIG_set0(signature.get(), r.get(), s.get()) != 1) return {};
  r.release();
  s.release();
  unsigned char* der = nullptr;
  const int size = i2d_ECDSA_SIG(signature.get(), &der);
  if (size <= 0) return {};
  std::string out(reinterpret_cast<char*>(der), static_cast<std::size_t>(size));
  OPENSSL_free(der);
  return out;
}

Result<Key> read_public_key(std::string_view pem) {
  const Bio bio = bio_of(pem);
  Key key(PEM_read_bio_PUBKEY(bio.get(), nullptr, nullptr, const_cast<char*>("")));
  if (!key) return jwt_failed("read a public key");
  return key;
}

}  // namespace

struct JwtKeys::Impl {
  struct Known {
    std::string id = {};
    std::string algorithm = {};
    Key key = {};
  };
  std::vector<Known> keys = {};  // the first signs

  Result<void> add(Key key) {
    std::string algorithm = algorithm_of(key.get());
    if (algorithm.empty()) {
      return fail(Code::kInvalid,
                  "tokens are signed with a P-256 key or an RSA key of at least 2048 bits");
    }
    std::string id = key_id(key.get());
    if (std::ranges::find(keys, id, &Known::id) == keys.end()) {
      keys.push_back({std::move(id), std::move(algorithm), std::move(key)});
    }
    return {};
  }
};

JwtKeys::JwtKeys(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
JwtKeys::JwtKeys(JwtKeys&&) noexcept = default;
JwtKeys& JwtKeys::operator=(JwtKeys&&) noexcept = default;
JwtKeys::~JwtKeys() = default;

Result<SigningKey> make_signing_key() {
  const Key key(EVP_EC_gen("P-256"));
  if (!key) return jwt_failed("make a key");
  const auto text_of = [](auto&& write) {
    const Bio bio(BIO_new(BIO_s_mem()));
    write(bio.get());
    char* data = nullptr;
    const long size = BIO_get_mem_data(bio.get(), &data);
    return std::string(data, static_cast<std::size_t>(size));
  };
  return SigningKey{.private_pem = text_of([&](BIO* bio) {
                      PEM_write_bio_PKCS8PrivateKey(bio, key.get(), nullptr, nullptr, 0, nullptr,
                                                    nullptr);
                    }),
                    .public_pem = text_of([&](BIO* bio) { PEM_write_bio_PUBKEY(bio, key.get()); })};
}

Result<JwtKeys> JwtKeys::open(std::string_view private_pem,
                              const std::vector<std::string>& public_pems) {
  auto impl = std::make_unique<Impl>();
  SKIFF_ASSIGN(Key signing, read_key(private_pem));
  SKIFF_TRY(impl->add(std::move(signing)));
  for (const std::string& pem : public_pems) {
    SKIFF_ASSIGN(Key key, read_public_key(pem));
    SKIFF_TRY(impl->add(std::move(key)));
  }
  return JwtKeys(std::move(impl));
}

Result<std::string> JwtKeys::sign(const json::object& claims) const {
  const Impl::Known& known = impl_->keys.front();
  const json::object header{{"alg", json::string(known.algorithm)},
                            {"kid", json::string(known.id)}};
  const std::string text =
      url_encode(json::serialize(header)) + "." + url_encode(json::serialize(claims));
  const auto* data = reinterpret_cast<const unsigned char*>(text.data());
  const Context context(EVP_MD_CTX_new());
  std::size_t size = 0;
  if (!context ||
      EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, known.key.get()) != 1 ||
      EVP_DigestSign(context.get(), nullptr, &size, data, text.size()) != 1) {
    return jwt_failed("sign a token");
  }
  std::string signature(size, '\0');
  if (EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size, data,
                     text.size()) != 1) {
    return jwt_failed("sign a token");
  }
  signature.resize(size);
  if (known.algorithm == "ES256") {
    const auto raw = from_der(signature);
    if (!raw) return jwt_failed("sign a token");
    signature = *raw;
  }
  return text + "." + url_encode(signature);
}

Result<json::object> JwtKeys::verify(std::string_view token) const {
  if (token.size() > kTokenBytes) return refused("the token is too long");
  const auto parts = split(token, '.');
  if (parts.size() != 3) return refused("the token does not have three parts");
  const auto header_text = url_decode(parts[0]);
  const auto payload = url_decode(parts[1]);
  auto signature = url_decode(parts[2]);
  if (!header_text || !payload || !signature) return refused("the token is not base64url");
  const auto header = json::parse(*header_text);
  if (!header || !header->is_object()) return refused("the token's header is no JSON object");
  // Extensions that the token says must be understood are not.
  if (header->get_object().contains("crit")) return refused("the token's header has extensions");
  const std::string_view id = json::get_string(*header, {"kid"});
  const auto known = std::ranges::find(impl_->keys, id, &Impl::Known::id);
  if (known == impl_->keys.end()) return refused("invalid signature, no keys found");
  if (json::get_string(*header, {"alg"}) != known->algorithm) {
    return refused("the token's algorithm is not its key's");
  }
  if (known->algorithm == "ES256") signature = to_der(*signature);
  const std::string_view text = token.substr(0, parts[0].size() + 1 + parts[1].size());
  const Context context(EVP_MD_CTX_new());
  const bool right =
      signature && context &&
      EVP_DigestVerifyInit(context.get(), nullptr, EVP_sha256(), nullptr, known->key.get()) == 1 &&
      EVP_DigestVerify(context.get(), reinterpret_cast<const unsigned char*>(signature->data()),
                       signature->size(), reinterpret_cast<const unsigned char*>(text.data()),
                       text.size()) == 1;
  openssl_complaint();  // a wrong signature leaves one behind
  if (!right) return refused("the token's signature is wrong");
  auto claims = json::parse(*payload);
  if (!claims || !claims->is_object()) return refused("the token's claims are no JSON object");
  return std::move(claims->get_object());
}

json::object JwtKeys::key_set() const {
  json::array keys;
  for (const Impl::Known& known : impl_->keys) {
    const bool ec = known.algorithm == "ES256";
    json::object key{{"use", "sig"},
                     {"kty", ec ? "EC" : "RSA"},
                     {"kid", json::string(known.id)},
                     {"alg", json::string(known.algorithm)}};
    if (ec) {
      key["crv"] = "P-256";
      key["x"] = number_text(known.key.get(), OSSL_PKEY_PARAM_EC_PUB_X, kP256Bytes);
      key["y"] = number_text(known.key.get(), OSSL_PKEY_PARAM_EC_PUB_Y, kP256Bytes);
    } else {
      key["n"] = number_text(known.key.get(), OSSL_PKEY_PARAM_RSA_N, 1);
      key["e"] = number_text(known.key.get(), OSSL_PKEY_PARAM_RSA_E, 1);
    }
    keys.emplace_back(std::move(key));
  }
  return {{"keys", std::move(keys)}};
}

std::vector<std::string> JwtKeys::algorithms() const {
  std::vector<std::string> out;
  for (const Impl::Known& known : impl_->keys) out.push_back(known.algorithm);
  std::ranges::sort(out);
  const auto rest = std::ranges::unique(out);
  out.erase(rest.begin(), rest.end());
  return out;
}

}  // namespace skiff::net
