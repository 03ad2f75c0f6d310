// skiff delete: removes objects by name, by file or by label.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>
#include <thread>

#include "cli/selection.h"
#include "cli/verbs/verbs.h"

namespace skiff::cli {
namespace {

using namespace std::chrono_literals;

struct DeleteOptions {
  Selection selection = {};
  bool no_wait = false;
  bool ignore_not_found = false;
  bool force = false;
  std::int64_t grace = -1;
};

void wait_until_gone(Connection& server, const Selected& victim) {
  for (auto pause = 10ms; pause < 2000ms; pause += pause / 8) {
    const auto still = server.client().get(victim.kind.resource, victim.ns, victim.name);
    if (!still) return;
    std::this_thread::sleep_for(pause);
  }
}

Result<void> run_delete(Context& context, const DeleteOptions& options) {
  SKIFF_ASSIGN(Connection * server, context.connect());
  SKIFF_ASSIGN(const std::vector<Selected> all, select(context, *server, options.selection));
  if (all.empty()) fmt::print(stderr, "nothing to delete\n");
  for (const Selected& victim : all) {
    json::object body = {
        {"apiVersion", "v1"}, {"kind", "DeleteOptions"}, {"propagationPolicy", "Background"}};
    if (options.force) body["gracePeriodSeconds"] = 0;
    if (options.grace >= 0) body["gracePeriodSeconds"] = options.grace;
    const auto done = server->client().write({.verb = client::Verb::kDelete,
                                              .resource = victim.kind.resource,
                                              .ns = victim.ns,
                                              .name = victim.name,
                                              .body = std::move(body)});
    if (!done && done.error().code == Code::kNotFound && options.ignore_not_found) continue;
    if (!done) return std::unexpected(done.error());
    if (!options.no_wait) wait_until_gone(*server, victim);
    SKIFF_TRY(print_done(context, *server, victim, *done, "deleted"));
  }
  return {};
}

}  // namespace

void add_delete(CLI::App& app, Context& context, int& exit_code) {
  auto options = std::make_shared<DeleteOptions>();
  CLI::App* verb = app.add_subcommand("delete", "Delete objects");
  add_selection(*verb, context, options->selection, "KIND NAME... or KIND/NAME...");
  add_output(*verb, context, "name or json: what was deleted");
  verb->add_flag("--force", options->force, "At once, without grace");
  verb->add_option("--grace-period", options->grace, "Seconds a pod has to end");
  verb->add_flag("--ignore-not-found", options->ignore_not_found, "A missing object is no error");
  verb->add_flag("--no-wait", options->no_wait, "Return before they are gone");
  verb->footer(R"help(
Examples:
  skiff delete pod web
  skiff delete tfjob/mnist pytorchjob/bert
  skiff delete pods -l app=web
  skiff delete -f job.yaml --ignore-not-found
)help");
  verb->callback([options, &context, &exit_code] {
    if (auto done = run_delete(context, *options); !done) exit_code = report(done.error());
  });
}

}  // namespace skiff::cli
