#include "net/pki.h"

#include <fmt/format.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <openssl/x509v3.h>

#include <array>

#include "base/check.h"
#include "net/openssl.h"

namespace skiff::net {
namespace {

std::string hex(const unsigned char* data, std::size_t size) {
  std::string out;
  for (std::size_t i = 0; i < size; ++i) out += fmt::format("{:02x}", data[i]);
  return out;
}

std::string bio_text(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return {data, static_cast<std::size_t>(size)};
}

std::unexpected<Error> pki_failed(std::string_view what) {
  return fail(Code::kInternal, fmt::format("cannot {}: {}", what, openssl_complaint()));
}

void add_name(X509_NAME* name, const char* field, const std::string& value) {
  X509_NAME_add_entry_by_txt(name, field, MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(value.data()),
                             static_cast<int>(value.size()), -1, 0);
}

bool add_extension(X509* certificate, X509* issuer, int id, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const Owned<X509_EXTENSION, X509_EXTENSION_free> extension(
      X509V3_EXT_conf_nid(nullptr, &context, id, value.c_str()));
  return extension && X509_add_ext(certificate, extension.get(), -1) == 1;
}

// The names are given to OpenSSL as values, not as its configuration text, in which a comma in a
// name would begin another name.
bool add_alternative_names(X509* certificate, const ServerNames& names) {
  const Owned<GENERAL_NAMES, GENERAL_NAMES_free> list(GENERAL_NAMES_new());
  const auto add = [&](int type, ASN1_STRING* value) {
    GENERAL_NAME* name = GENERAL_NAME_new();
    GENERAL_NAME_set0_value(name, type, value);
    sk_GENERAL_NAME_push(list.get(), name);
  };
  for (const std::string& dns : names.dns) {
    ASN1_IA5STRING* text = ASN1_IA5STRING_new();
    ASN1_STRING_set(text, dns.data(), static_cast<int>(dns.size()));
    add(GEN_DNS, text);
  }
  for (const std::string& address : names.addresses) {
    ASN1_OCTET_STRING* bytes = a2i_IPADDRESS(address.c_str());
    if (bytes == nullptr) return false;
    add(GEN_IPADD, bytes);
  }
  return X509_add1_ext_i2d(certificate, NID_subject_alt_name, list.get(), 0, 0) == 1;
}

struct Extension {
  int id;
  const char* value;
};

struct Template {
  std::string common_name;
  std::vector<std::string> organizations;
  std::chrono::days valid;
  std::vector<Extension> extensions;
  const ServerNames* names = nullptr;
};

bool set_serial(X509* certificate) {
  std::array<unsigned char, 16> bytes{};
  if (RAND_bytes(bytes.data(), bytes.size()) != 1) return false;
  bytes[0] = (bytes[0] & 0x7f) | 0x40;  // positive, and never short
  const Owned<BIGNUM, BN_free> number(BN_bin2bn(bytes.data(), bytes.size(), nullptr));
  return number && BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr;
}

// Signed by the issuer, or by itself where there is none.
Result<Identity> make(const Template& what, X509* issuer, EVP_PKEY* issuer_key) {
  const Key key(EVP_EC_gen("P-256"));
  const Certificate made(X509_new());
  if (!key || !made) return pki_failed("make a key");
  X509* certificate = made.get();
  X509* signer = issuer != nullptr ? issuer : certificate;
  X509_set_version(certificate, X509_VERSION_3);
  if (!set_serial(certificate)) return pki_failed("draw a serial number");
  // Begun an hour ago: clocks of other machines may be behind.
  X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
  X509_time_adj_ex(X509_getm_notAfter(certificate), static_cast<int>(what.valid.count()), 0,
                   nullptr);
  X509_NAME* subject = X509_get_subject_name(certificate);
  for (const std::string& organization : what.organizations) add_name(subject, "O", organization);
  add_name(subject, "CN", what.common_name);
  X509_set_issuer_name(certificate, X509_get_subject_name(signer));
  X509_set_pubkey(certificate, key.get());
  for (const Extension& extension : what.extensions) {
    if (!add_extension(certificate, signer, extension.id, extension.value)) {
      return pki_failed("add an extension to a certificate");
    }
  }
  if (what.names != nullptr && !add_alternative_names(certificate, *what.names)) {
    return pki_failed("add the server's names to its certificate");
  }
  // Only now: the authority's own key identifier has to be there before it can be pointed to.
  if (!add_extension(certificate, signer, NID_authority_key_identifier, "keyid:always")) {
    return pki_failed("name the issuer's key in a certificate");
  }
  if (X509_sign(certificate, issuer_key != nullptr ? issuer_key : key.get(), EVP_sha256()) == 0) {
    return pki_failed("sign a certificate");
  }
  const Bio certificate_text(BIO_new(BIO_s_mem()));
  const Bio key_text(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(certificate_text.get(), certificate);
  PEM_write_bio_PKCS8PrivateKey(key_text.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  return Identity{bio_text(certificate_text.get()), bio_text(key_text.get())};
}

Result<Identity> issue(const Identity& authority, const Template& what) {
  SKIFF_ASSIGN(const auto issuers, read_certificates(authority.certificate_pem));
  SKIFF_ASSIGN(const auto key, read_key(authority.key_pem));
  return make(what, issuers.front().get(), key.get());
}

}  // namespace

Result<Identity> make_authority(const std::string& common_name, std::chrono::days valid) {
  return make({.common_name = common_name,
               .valid = valid,
               .extensions = {{NID_basic_constraints, "critical,CA:TRUE"},
                              {NID_key_usage, "critical,digitalSignature,keyCertSign,cRLSign"},
                              {NID_subject_key_identifier, "hash"}}},
              nullptr, nullptr);
}

Result<Identity> issue_server(const Identity& authority, const std::string& common_name,
                              const ServerNames& names, std::chrono::days valid) {
  return issue(authority, {.common_name = common_name,
                           .valid = valid,
                           .extensions = {{NID_basic_constraints, "critical,CA:FALSE"},
                                          {NID_key_usage, "critical,digitalSignature"},
                                          {NID_ext_key_usage, "serverAuth"},
                                          {NID_subject_key_identifier, "hash"}},
                           .names = &names});
}

Result<Identity> issue_client(const Identity& authority, const std::string& common_name,
                              const std::vector<std::string>& organizations,
                              std::chrono::days valid) {
  return issue(authority, {.common_name = common_name,
                           .organizations = organizations,
                           .valid = valid,
                           .extensions = {{NID_basic_constraints, "critical,CA:FALSE"},
                                          {NID_key_usage, "critical,digitalSignature"},
                                          {NID_ext_key_usage, "clientAuth"},
                                          {NID_subject_key_identifier, "hash"}}});
}

Result<std::chrono::sys_seconds> valid_until(std::string_view certificate_pem) {
  SKIFF_ASSIGN(const auto certificates, read_certificates(certificate_pem));
  tm parts{};
  if (ASN1_TIME_to_tm(X509_get0_notAfter(certificates.front().get()), &parts) != 1) {
    return pki_failed("read when a certificate ends");
  }
  return std::chrono::sys_seconds(std::chrono::seconds(::timegm(&parts)));
}

std::string random_token(std::size_t bytes) {
  std::vector<unsigned char> data(bytes);
  SKIFF_CHECK(RAND_bytes(data.data(), static_cast<int>(bytes)) == 1,
              "the operating system gives no random bytes");
  return hex(data.data(), data.size());
}

std::string sha256_hex(std::string_view data) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(data.data()), data.size(), digest.data());
  return hex(digest.data(), digest.size());
}

}  // namespace skiff::net
