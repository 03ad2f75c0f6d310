#include "net/openssl.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include <array>

namespace skiff::net {

std::string openssl_complaint() {
  std::array<char, 256> text{};
  const unsigned long code = ERR_peek_last_error();
  if (code == 0) return "no reason given";
  ERR_error_string_n(code, text.data(), text.size());
  ERR_clear_error();
  return text.data();
}

Result<std::vector<Certificate>> read_certificates(std::string_view pem) {
  std::vector<Certificate> out;
  const Bio bio = bio_of(pem);
  while (X509* read = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr))
    out.emplace_back(read);
  ERR_clear_error();  // the end of the text is an error to OpenSSL
  if (out.empty()) return fail(Code::kInvalid, "there is no certificate in the given PEM text");
  return out;
}

Result<Key> read_key(std::string_view pem) {
  const Bio bio = bio_of(pem);
  // An empty pass phrase instead of OpenSSL's prompt on the terminal.
  Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, const_cast<char*>("")));
  if (!key) {
    ERR_clear_error();
    return fail(Code::kInvalid, "there is no readable private key in the given PEM text");
  }
  return key;
}

}  // namespace skiff::net
