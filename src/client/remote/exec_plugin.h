// Credential plug-ins of a kubeconfig (client.authentication.k8s.io): a program that prints who we
// are. Pure but for run_exec.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "base/time.h"

namespace skiff::client {

enum class Interactive { kNever, kIfAvailable, kAlways };

struct ExecPlugin {
  std::string api_version = {};
  std::string command = {};
  std::vector<std::string> arguments = {};
  std::vector<std::pair<std::string, std::string>> environment = {};
  Interactive interactive = Interactive::kIfAvailable;
  std::string install_hint = {};
  json::value cluster = {};  // what it is told of the cluster; null: nothing
};

struct Credential {
  std::string token = {};
  std::string certificate_pem = {};
  std::string key_pem = {};
  std::optional<Time> expires = {};
};

// `exec` of a kubeconfig's user, and the cluster it is for.
Result<ExecPlugin> parse_exec(const json::value& exec, const json::value& cluster,
                              std::string_view ca_pem);
// What KUBERNETES_EXEC_INFO says.
std::string exec_info(const ExecPlugin& plugin, bool interactive);
Result<Credential> parse_exec_credential(const ExecPlugin& plugin, std::string_view output);

// Runs it. The error says what to install where it is missing.
Result<Credential> run_exec(const ExecPlugin& plugin);

}  // namespace skiff::client
