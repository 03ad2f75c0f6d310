// skiff token, kubeconfig, env: how other clients find this Skiff.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <sstream>

#include "base/json.h"
#include "base/strings.h"
#include "base/yaml.h"
#include "cli/verbs/verbs.h"

namespace skiff::cli {
namespace {

Result<std::string> read_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    return fail(
        Code::kNotFound,
        fmt::format("cannot read {}; Skiff makes it when it first starts: skiff up -d", path));
  }
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

int print_token(Context& context) {
  const auto text = read_file(context.globals.data + "/pki/token");
  if (!text) return report(text.error());
  if (context.globals.output == "json") {
    fmt::print("{}\n", json::pretty(json::object{{"token", trim(*text)}}));
  } else {
    fmt::print("{}\n", trim(*text));
  }
  return 0;
}

int print_kubeconfig(Context& context) {
  const auto text = read_file(context.globals.data + "/kubeconfig");
  if (!text) return report(text.error());
  if (context.globals.output == "json") {
    const auto config = yaml::parse(*text);
    if (!config) return report(config.error());
    fmt::print("{}\n", json::pretty(*config));
  } else {
    fmt::print("{}\n", trim(*text));
  }
  return 0;
}

// As one word of a shell.
std::string shell_word(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + "'";
}

int print_env(Context& context) {
  const std::string& data = context.globals.data;
  const auto token = read_file(data + "/pki/token");
  const auto address = read_file(data + "/address");
  if (!token) return report(token.error());
  if (!address) return report(address.error());
  if (context.globals.output == "json") {
    fmt::print("{}\n", json::pretty(json::object{{"SKIFF_HOME", data},
                                                 {"KUBECONFIG", data + "/kubeconfig"},
                                                 {"SKIFF_URL", trim(*address)},
                                                 {"SKIFF_TOKEN", trim(*token)}}));
    return 0;
  }
  fmt::print("export SKIFF_HOME={}\nexport KUBECONFIG={}\n", shell_word(data),
             shell_word(data + "/kubeconfig"));
  fmt::print("export SKIFF_URL={}\nexport SKIFF_TOKEN={}\n", shell_word(trim(*address)),
             shell_word(trim(*token)));
  return 0;
}

}  // namespace

void add_access(CLI::App& app, Context& context, int& exit_code) {
  app.add_subcommand("token", "Print the administrator's bearer token")
      ->callback([&context, &exit_code] { exit_code = print_token(context); });
  app.add_subcommand("kubeconfig", "Print the administrator's kubeconfig")
      ->callback([&context, &exit_code] { exit_code = print_kubeconfig(context); });
  app.add_subcommand("env",
                     "Print shell lines that point other clients here: eval \"$(skiff env)\"")
      ->callback([&context, &exit_code] { exit_code = print_env(context); });
}

}  // namespace skiff::cli
