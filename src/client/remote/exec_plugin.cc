#include "client/remote/exec_plugin.h"

#include <fmt/format.h>
#include <unistd.h>

#include "base/base64.h"
#include "env/posix/program.h"

namespace skiff::client {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kGroup = "client.authentication.k8s.io";
// A person may have to sign in with a browser; a program alone has no such excuse.
constexpr auto kPersonTime = 10min;
constexpr auto kProgramTime = 1min;

Result<Interactive> interactive_mode(const json::value& exec, std::string_view api_version) {
  const std::string_view mode = json::get_string(exec, {"interactiveMode"});
  if (mode == "Never") return Interactive::kNever;
  if (mode == "Always") return Interactive::kAlways;
  if (mode == "IfAvailable") return Interactive::kIfAvailable;
  if (!mode.empty()) {
    return fail(Code::kInvalid, fmt::format("the kubeconfig's exec plug-in has an unknown "
                                            "interactiveMode \"{}\"",
                                            mode));
  }
  if (api_version.ends_with("/v1")) {
    return fail(Code::kInvalid,
                "the kubeconfig's exec plug-in must say interactiveMode: Never, IfAvailable or "
                "Always");
  }
  return Interactive::kIfAvailable;
}

json::value cluster_info(const json::value& cluster, std::string_view ca_pem) {
  json::object out;
  for (const std::string_view key :
       {"server", "tls-server-name", "insecure-skip-tls-verify", "proxy-url"}) {
    if (const json::value* found = json::find(cluster, {key})) out[key] = *found;
  }
  if (!ca_pem.empty()) out["certificate-authority-data"] = base64::encode(ca_pem);
  for (const json::value& extension : json::get_array(cluster, {"extensions"})) {
    if (json::get_string(extension, {"name"}) != "client.authentication.k8s.io/exec") continue;
    if (const json::value* config = json::find(extension, {"extension"})) out["config"] = *config;
  }
  return out;
}

std::unexpected<Error> refused(const ExecPlugin& plugin, std::string_view why) {
  return fail(Code::kUnauthorized,
              fmt::format("the credential plug-in {} {}", plugin.command, why));
}

}  // namespace

Result<ExecPlugin> parse_exec(const json::value& exec, const json::value& cluster,
                              std::string_view ca_pem) {
  ExecPlugin out{.api_version = std::string(json::get_string(exec, {"apiVersion"})),
                 .command = std::string(json::get_string(exec, {"command"})),
                 .arguments = json::strings(json::get_array(exec, {"args"})),
                 .install_hint = std::string(json::get_string(exec, {"installHint"}))};
  if (out.command.empty()) {
    return fail(Code::kInvalid, "the kubeconfig's exec plug-in has no command");
  }
  if (out.api_version != fmt::format("{}/v1", kGroup) &&
      out.api_version != fmt::format("{}/v1beta1", kGroup)) {
    return fail(Code::kInvalid,
                fmt::format("the kubeconfig's exec plug-in has apiVersion \"{}\"; known are {}/v1 "
                            "and {}/v1beta1",
                            out.api_version, kGroup, kGroup));
  }
  SKIFF_ASSIGN(out.interactive, interactive_mode(exec, out.api_version));
  for (const json::value& pair : json::get_array(exec, {"env"})) {
    out.environment.emplace_back(json::get_string(pair, {"name"}),
                                 json::get_string(pair, {"value"}));
  }
  if (json::get_bool(exec, {"provideClusterInfo"}).value_or(false)) {
    out.cluster = cluster_info(cluster, ca_pem);
  }
  return out;
}

std::string exec_info(const ExecPlugin& plugin, bool interactive) {
  json::object spec{{"interactive", interactive}};
  if (!plugin.cluster.is_null()) spec["cluster"] = plugin.cluster;
  return json::serialize(json::object{
      {"kind", "ExecCredential"}, {"apiVersion", plugin.api_version}, {"spec", std::move(spec)}});
}

Result<Credential> parse_exec_credential(const ExecPlugin& plugin, std::string_view output) {
  const auto answer = json::parse(output);
  if (!answer) return refused(plugin, "printed no JSON: " + answer.error().message);
  const std::string_view version = json::get_string(*answer, {"apiVersion"});
  if (json::get_string(*answer, {"kind"}) != "ExecCredential") {
    return refused(plugin, "printed something else than an ExecCredential");
  }
  if (version != plugin.api_version) {
    return refused(
        plugin, fmt::format("is configured for {}, but printed {}", plugin.api_version, version));
  }
  Credential out{.token = std::string(json::get_string(*answer, {"status", "token"})),
                 .certificate_pem =
                     std::string(json::get_string(*answer, {"status", "clientCertificateData"})),
                 .key_pem = std::string(json::get_string(*answer, {"status", "clientKeyData"}))};
  if (out.certificate_pem.empty() != out.key_pem.empty()) {
    return refused(plugin, "gave only one of certificate and key");
  }
  if (out.token.empty() && out.key_pem.empty()) {
    return refused(plugin, "gave neither a token nor a certificate with its key");
  }
  const std::string_view expires = json::get_string(*answer, {"status", "expirationTimestamp"});
  if (!expires.empty()) {
    out.expires = parse_time(expires);
    if (!out.expires) return refused(plugin, fmt::format("gave no time: \"{}\"", expires));
  }
  return out;
}

Result<Credential> run_exec(const ExecPlugin& plugin) {
  const bool person = plugin.interactive != Interactive::kNever && isatty(STDIN_FILENO) != 0;
  if (plugin.interactive == Interactive::kAlways && !person) {
    return refused(plugin, "asks questions, but standard input is not a terminal");
  }
  env::posix::Program program{.environment = plugin.environment,
                              .shares_input = person,
                              .timeout = person ? kPersonTime : kProgramTime};
  program.arguments = {plugin.command};
  program.arguments.insert(program.arguments.end(), plugin.arguments.begin(),
                           plugin.arguments.end());
  program.environment.emplace_back("KUBERNETES_EXEC_INFO", exec_info(plugin, person));
  const auto done = env::posix::run_program(program);
  if (!done && done.error().code == Code::kNotFound) {
    return refused(plugin,
                   fmt::format("is not installed{}{}", plugin.install_hint.empty() ? "" : ": ",
                               plugin.install_hint));
  }
  if (!done) return refused(plugin, "failed: " + done.error().message);
  if (done->exit_code != 0) {
    return refused(plugin, fmt::format("failed with exit code {}", done->exit_code));
  }
  return parse_exec_credential(plugin, done->output);
}

}  // namespace skiff::client
