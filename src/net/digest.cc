#include "net/digest.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include "base/check.h"

namespace skiff::net {

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~State() { EVP_MD_CTX_free(context); }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  SKIFF_CHECK(EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr) == 1, "no SHA-256");
}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(std::string_view bytes) {
  SKIFF_CHECK(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) == 1, "no SHA-256");
}

std::string Sha256::finish() {
  unsigned char bytes[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  SKIFF_CHECK(EVP_DigestFinal_ex(state_->context, bytes, &size) == 1, "no SHA-256");
  std::string out;
  for (unsigned i = 0; i < size; ++i) out += fmt::format("{:02x}", bytes[i]);
  return out;
}

}  // namespace skiff::net
