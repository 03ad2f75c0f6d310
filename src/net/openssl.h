// Ownership of OpenSSL's objects and reading of PEM. Internal to net/.
#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace skiff::net {

template <auto Free>
struct Freeing {
  template <class T>
  void operator()(T* object) const {
    Free(object);
  }
};
template <class T, auto Free>
using Owned = std::unique_ptr<T, Freeing<Free>>;

using Certificate = Owned<X509, X509_free>;
using Key = Owned<EVP_PKEY, EVP_PKEY_free>;
using Bio = Owned<BIO, BIO_free_all>;

inline Bio bio_of(std::string_view text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// Every certificate of the text; at least one, or an error.
Result<std::vector<Certificate>> read_certificates(std::string_view pem);
Result<Key> read_key(std::string_view pem);
// What OpenSSL last complained about on this thread; clears it.
std::string openssl_complaint();

}  // namespace skiff::net
