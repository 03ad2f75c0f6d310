// Where an API server is and who we are to it: from a kubeconfig, or from the files that every pod
// of a cluster finds.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/http.h"
#include "base/result.h"
#include "client/remote/exec_plugin.h"
#include "net/client.h"

namespace skiff::client {

struct Access {
  net::Endpoint endpoint = {};
  std::string token = {};
  std::filesystem::path token_file = {};  // wins over `token`, and is read again as it is rotated
  std::string user = {};                  // basic authentication
  std::string password = {};
  std::optional<ExecPlugin> exec = {};  // a program gives the credentials; any other wins
  std::string ns = "default";
  // Whom to act as, where we may: a user, its groups.
  std::string as = {};
  std::vector<std::string> as_groups = {};
  std::string as_uid = {};

  http::Headers impersonation() const;
};

// `folder` is what relative file names in the text are relative to. An empty context: the current.
Result<Access> parse_kubeconfig(std::string_view text, const std::filesystem::path& folder,
                                std::string_view context = {});
// One file, or several with ':' between them as in $KUBECONFIG: the first that has an entry wins,
// and those that do not exist are passed over.
Result<Access> load_kubeconfig(const std::string& files, std::string_view context = {});

inline constexpr std::string_view kPodSecrets = "/var/run/secrets/kubernetes.io/serviceaccount";
// `host` and `port` as in KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT.
Result<Access> in_cluster(std::string_view host, std::string_view port,
                          const std::filesystem::path& secrets = kPodSecrets);

}  // namespace skiff::client
