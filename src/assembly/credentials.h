// Who we are and how clients know us: an authority of our own, certificates, the administrator's
// token, the key that signs tokens of service accounts, a kubeconfig. Made at first start in
// <data>/pki; certificates are renewed before they end.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apiserver/access/tokens.h"
#include "assembly/data_folder.h"
#include "base/result.h"
#include "base/time.h"
#include "net/jwt.h"
#include "net/pki.h"

namespace skiff::assembly {

struct Credentials {
  net::Identity authority = {};
  net::Identity server = {};
  net::Identity admin = {};
  std::string token = {};
  std::shared_ptr<const net::JwtKeys> token_keys = {};
};

// `addresses`: what clients may call us besides localhost (IP numbers).
Result<Credentials> load_or_make_credentials(const DataFolder& folder,
                                             const std::vector<std::string>& addresses, Time now);

// How the API server signs and verifies tokens of service accounts with those keys.
apiserver::TokenCodec token_codec(std::shared_ptr<const net::JwtKeys> keys);

// The administrator's kubeconfig for a server at `url`.
std::string kubeconfig_text(const Credentials& credentials, const std::string& url);

}  // namespace skiff::assembly
