#include "cli/cli.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <filesystem>

#include "cli/verbs/verbs.h"

namespace skiff::cli {
namespace {

std::string default_data_folder() {
  if (const char* home = std::getenv("SKIFF_HOME"); home != nullptr && *home != 0) return home;
  const char* user = std::getenv("HOME");
  return std::string(user == nullptr ? "/tmp" : user) + "/.skiff";
}

// In a pod, under the name of kubectl (src/node/remote_shell.h), there is no data folder of ours: a
// home folder that the pod sees may be that of a machine with a Skiff, and the pod is to be itself.
constexpr const char* kNoData = "/nonexistent";

bool acts_as_kubectl(int argc, char** argv) {
  return argc > 0 && std::filesystem::path(argv[0]).filename() == "kubectl" &&
         std::getenv("KUBERNETES_SERVICE_HOST") != nullptr;
}

constexpr const char* kHelpFooter = R"help(
First steps:
  skiff up -d                                   start it (under a second)
  skiff train train.py --framework pytorch --workers 2
  skiff get pods,tfjobs,pytorchjobs             what is there
  skiff why tfjob/NAME                          why it waits or failed
  skiff explain tfjobs.spec                     which fields there are
  eval "$(skiff env)"                           point kubectl and other clients here
  skiff down                                    stop it, pods included
)help";

// What every verb takes, before or after its name.
void add_globals(CLI::App& app, Globals& globals) {
  app.add_option("--data", globals.data, "Data folder ($SKIFF_HOME, else ~/.skiff)")
      ->transform([](const std::string& path) {
        return std::filesystem::absolute(path).lexically_normal().string();
      });
  app.add_option("-n,--namespace", globals.ns, "Namespace (the kubeconfig's, else default)");
  app.add_flag_callback("--json", [&globals] { globals.output = "json"; }, "Answer in JSON");
  app.add_option("--kubeconfig", globals.kubeconfig,
                 "Another server (the data folder's own, else $KUBECONFIG)");
  app.add_option("--context", globals.kube_context, "Context of the kubeconfig");
  app.add_option("--as", globals.as, "Act as this user, where you may");
  app.add_option("--as-group", globals.as_groups, "... and in these groups");
}

}  // namespace

int run(int argc, char** argv, const Hooks& hooks) {
  // A reader that goes away (`skiff logs | head`) ends us quietly instead of killing mid-line.
  std::signal(SIGPIPE, SIG_IGN);
  CLI::App app{"Skiff: Kubeflow in one binary"};
  app.footer(kHelpFooter);
  app.require_subcommand(1);
  app.fallthrough();
  Context context;
  context.globals.data = default_data_folder();
  if (acts_as_kubectl(argc, argv)) context.globals.data = kNoData;
  context.globals.colour = isatty(STDOUT_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr;
  add_globals(app, context.globals);
  int exit_code = 0;
  add_up(app, context, hooks, exit_code);
  add_down(app, context, hooks, exit_code);
  add_status(app, context, exit_code);
  add_run(app, context, exit_code);
  add_train(app, context, exit_code);
  add_apply(app, context, exit_code);
  add_patch(app, context, exit_code);
  add_edit(app, context, exit_code);
  add_label(app, context, exit_code);
  add_get(app, context, exit_code);
  add_describe(app, context, exit_code);
  add_logs(app, context, exit_code);
  add_exec(app, context, exit_code);
  add_cp(app, context, exit_code);
  add_port_forward(app, context, exit_code);
  add_top(app, context, exit_code);
  add_wait(app, context, exit_code);
  add_rollout(app, context, exit_code);
  add_why(app, context, exit_code);
  add_delete(app, context, exit_code);
  add_explain(app, context, exit_code);
  add_api_resources(app, context, exit_code);
  add_auth(app, context, exit_code);
  add_backup(app, context, hooks, exit_code);
  add_restore(app, context, hooks, exit_code);
  add_image(app, context, exit_code);
  add_access(app, context, exit_code);
  add_doctor(app, context, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : 2;
  }
  return exit_code;
}

}  // namespace skiff::cli
