// Where an API server is and who we are to it: from a kubeconfig, or from the files that every pod
// of a cluster finds.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/http.h"
#include "base/result.h"
#include "net/client.h"

namespace skiff::client {

struct Access {
  net::Endpoint endpoint = {};
  std::string token = {};
  std::filesystem::path token_file = {};  // wins over `token`, and is read again as it is rotated
  std::string user = {};                  // basic authentication
  std::string password = {};
  std::string ns = "default";

  // The Authorization header; nothing where a certificate or nothing at all speaks for us.
  Result<http::Headers> headers() const;
};

// `folder` is what relative file names in the text are relative to. An empty context: the current.
Result<Access> parse_kubeconfig(std::string_view text, const std::filesystem::path& folder,
                                std::string_view context = {});
Result<Access> load_kubeconfig(const std::filesystem::path& file, std::string_view context = {});

inline constexpr std::string_view kPodSecrets = "/var/run/secrets/kubernetes.io/serviceaccount";
// `host` and `port` as in KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT.
Result<Access> in_cluster(std::string_view host, std::string_view port,
                          const std::filesystem::path& secrets = kPodSecrets);

}  // namespace skiff::client
