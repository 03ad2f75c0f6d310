// Who we are and how clients know us: an authority of our own, certificates, the administrator's
// token, a kubeconfig. Made at first start in <data>/pki, renewed before they end.
#pragma once

#include <string>
#include <vector>

#include "assembly/data_folder.h"
#include "base/result.h"
#include "base/time.h"
#include "net/pki.h"

namespace skiff::assembly {

struct Credentials {
  net::Identity authority = {};
  net::Identity server = {};
  net::Identity admin = {};
  std::string token = {};
};

// `addresses`: what clients may call us besides localhost (IP numbers).
Result<Credentials> load_or_make_credentials(const DataFolder& folder,
                                             const std::vector<std::string>& addresses, Time now);

// The administrator's kubeconfig for a server at `url`.
std::string kubeconfig_text(const Credentials& credentials, const std::string& url);

}  // namespace skiff::assembly
