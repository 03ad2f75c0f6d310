// The list of verbs. Each adds itself to the parser and leaves its exit code in `exit_code`.
#pragma once

#include "cli/cli.h"
#include "cli/context.h"

namespace CLI {
class App;
}

namespace skiff::cli {

void add_up(CLI::App& app, Context& context, const Hooks& hooks, int& exit_code);
void add_down(CLI::App& app, Context& context, const Hooks& hooks, int& exit_code);
void add_backup(CLI::App& app, Context& context, const Hooks& hooks, int& exit_code);
void add_restore(CLI::App& app, Context& context, const Hooks& hooks, int& exit_code);
void add_status(CLI::App& app, Context& context, int& exit_code);
void add_access(CLI::App& app, Context& context, int& exit_code);  // token, kubeconfig, env
void add_doctor(CLI::App& app, Context& context, int& exit_code);
void add_apply(CLI::App& app, Context& context, int& exit_code);
void add_get(CLI::App& app, Context& context, int& exit_code);
void add_describe(CLI::App& app, Context& context, int& exit_code);
void add_delete(CLI::App& app, Context& context, int& exit_code);
void add_explain(CLI::App& app, Context& context, int& exit_code);
void add_api_resources(CLI::App& app, Context& context, int& exit_code);
void add_patch(CLI::App& app, Context& context, int& exit_code);
void add_edit(CLI::App& app, Context& context, int& exit_code);
void add_label(CLI::App& app, Context& context, int& exit_code);  // label, annotate
void add_wait(CLI::App& app, Context& context, int& exit_code);
void add_rollout(CLI::App& app, Context& context, int& exit_code);
void add_auth(CLI::App& app, Context& context, int& exit_code);
void add_logs(CLI::App& app, Context& context, int& exit_code);
void add_run(CLI::App& app, Context& context, int& exit_code);
void add_exec(CLI::App& app, Context& context, int& exit_code);  // exec, attach
void add_cp(CLI::App& app, Context& context, int& exit_code);
void add_port_forward(CLI::App& app, Context& context, int& exit_code);
void add_top(CLI::App& app, Context& context, int& exit_code);
void add_why(CLI::App& app, Context& context, int& exit_code);
// What `skiff why` says of it.
Result<std::vector<std::string>> reasons(Connection& server, const api::Kind& kind,
                                         const std::string& ns, const std::string& name);
void add_image(CLI::App& app, Context& context, int& exit_code);
// The verbs of `skiff image` about the store.
void add_image_store(CLI::App& image, Context& context, int& exit_code);
void add_train(CLI::App& app, Context& context, int& exit_code);

}  // namespace skiff::cli
