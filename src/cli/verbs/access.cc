// skiff token, kubeconfig, env: how other clients find this Skiff.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <sstream>

#include "base/strings.h"
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

int print_file(const std::string& path) {
  const auto text = read_file(path);
  if (!text) return report(text.error());
  fmt::print("{}\n", trim(*text));
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
  fmt::print("export SKIFF_HOME={}\nexport KUBECONFIG={}\n", shell_word(data),
             shell_word(data + "/kubeconfig"));
  fmt::print("export SKIFF_URL={}\nexport SKIFF_TOKEN={}\n", shell_word(trim(*address)),
             shell_word(trim(*token)));
  return 0;
}

}  // namespace

void add_access(CLI::App& app, Context& context, int& exit_code) {
  app.add_subcommand("token", "Print the administrator's bearer token")
      ->callback(
          [&context, &exit_code] { exit_code = print_file(context.globals.data + "/pki/token"); });
  app.add_subcommand("kubeconfig", "Print the administrator's kubeconfig")
      ->callback(
          [&context, &exit_code] { exit_code = print_file(context.globals.data + "/kubeconfig"); });
  app.add_subcommand("env",
                     "Print shell lines that point other clients here: eval \"$(skiff env)\"")
      ->callback([&context, &exit_code] { exit_code = print_env(context); });
}

}  // namespace skiff::cli
