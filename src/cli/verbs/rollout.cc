// skiff rollout: how a rollout goes on, its history, and taking it back.
#include "cli/rollout.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>

#include "api/meta.h"
#include "base/yaml.h"
#include "cli/selection.h"
#include "cli/verbs/verbs.h"
#include "cli/wait_for.h"

namespace skiff::cli {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kRolloutPause = 200ms;

struct RolloutOptions {
  Selection selection = {};
  std::int64_t revision = 0;
  std::string timeout = "0s";
  bool watch = true;
};

std::string stamp() {
  return rfc3339(std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now()));
}

Result<json::value> read_selected(Connection& server, const Selected& what) {
  return server.client().get(what.kind.resource, what.ns, what.name);
}

// "deployments.apps "web" is already paused"
Error about(const Selected& what, Error error) {
  error.message = fmt::format("{} \"{}\" {}", what.kind.resource.key(), what.name, error.message);
  return error;
}

Result<void> show_status(Context&, Connection& server, const Selected& what,
                         const RolloutOptions& options) {
  SKIFF_ASSIGN(const Duration time, parse_timeout(options.timeout));
  const auto end = std::chrono::steady_clock::now() + time;
  std::string shown;
  while (true) {
    auto object = read_selected(server, what);
    // A server that restarts comes back.
    const bool away = !object && object.error().code == Code::kServiceUnavailable;
    if (!object && !away) return std::unexpected(std::move(object).error());
    if (object) {
      SKIFF_ASSIGN(const RolloutStatus status, rollout_status(*object, options.revision));
      if (status.text != shown) fmt::print("{}\n", status.text);
      std::fflush(stdout);
      shown = status.text;
      if (status.done || !options.watch) return {};
    }
    if (time > Duration(0) && std::chrono::steady_clock::now() >= end) {
      return fail(Code::kTimeout, "timed out waiting for the condition");
    }
    std::this_thread::sleep_for(kRolloutPause);
  }
}

Result<std::vector<Revision>> read_history(Connection& server, const Selected& what,
                                           const json::value& object) {
  SKIFF_ASSIGN(const client::List kept, server.client().list(revision_keeper(object), what.ns, {}));
  return revisions_of(object, kept.items);
}

Result<void> show_history(Context&, Connection& server, const Selected& what,
                          const RolloutOptions& options) {
  SKIFF_ASSIGN(const json::value object, read_selected(server, what));
  if (!rolls_out(object)) {
    return fail(Code::kBadRequest, fmt::format("no history viewer has been implemented for \"{}\"",
                                               api::kind(object)));
  }
  SKIFF_ASSIGN(const std::vector<Revision> revisions, read_history(server, what, object));
  if (options.revision == 0) {
    fmt::print("{}\n{}\n", what.shown(), history_table(revisions));
    return {};
  }
  SKIFF_ASSIGN(const Revision one, find_revision(object, revisions, options.revision));
  fmt::print("{} with revision #{}\n{}", what.shown(), one.number,
             yaml::serialize(json::object{{"template", one.pod_template}}));
  return {};
}

Result<void> undo(Context& context, Connection& server, const Selected& what,
                  const RolloutOptions& options) {
  SKIFF_ASSIGN(const json::value object, read_selected(server, what));
  if (!rolls_out(object)) {
    return fail(Code::kBadRequest,
                fmt::format("no rollbacker has been implemented for \"{}\"", api::kind(object)));
  }
  if (json::get_bool(object, {"spec", "paused"}).value_or(false)) {
    return fail(Code::kBadRequest,
                "you cannot rollback a paused deployment; resume it first with 'skiff rollout "
                "resume' and try again");
  }
  SKIFF_ASSIGN(const std::vector<Revision> revisions, read_history(server, what, object));
  SKIFF_ASSIGN(const Revision target, find_revision(object, revisions, options.revision));
  json::array patch = undo_patch(object, target);
  if (patch.empty()) {
    return print_done(context, server, what, object,
                      fmt::format("skipped rollback (current template already matches revision {})",
                                  target.number));
  }
  SKIFF_ASSIGN(const json::value done,
               server.client().write({.verb = client::Verb::kJsonPatch,
                                      .resource = what.kind.resource,
                                      .ns = what.ns,
                                      .name = what.name,
                                      .body = std::move(patch),
                                      .uid = std::string(api::uid(object))}));
  return print_done(context, server, what, done, "rolled back");
}

using MakePatch = std::function<Result<json::object>(const json::value& object)>;

Result<void> change(Context& context, Connection& server, const Selected& what,
                    const MakePatch& make, std::string_view word) {
  SKIFF_ASSIGN(const json::value object, read_selected(server, what));
  auto patch = make(object);
  if (!patch) return std::unexpected(about(what, std::move(patch).error()));
  SKIFF_ASSIGN(const json::value done, server.client().write({.verb = client::Verb::kMergePatch,
                                                              .resource = what.kind.resource,
                                                              .ns = what.ns,
                                                              .name = what.name,
                                                              .body = *std::move(patch)}));
  return print_done(context, server, what, done, word);
}

using Act =
    std::function<Result<void>(Context&, Connection&, const Selected&, const RolloutOptions&)>;

Act changing(std::function<Result<json::object>(const json::value&)> make, std::string word) {
  return [make = std::move(make), word = std::move(word)](
             Context& context, Connection& server, const Selected& what, const RolloutOptions&) {
    return change(context, server, what, make, word);
  };
}

Result<void> run_for_all(Context& context, const RolloutOptions& options, const Act& act) {
  if (options.revision < 0) {
    return fail(Code::kBadRequest,
                fmt::format("revision must be a positive integer: {}", options.revision));
  }
  SKIFF_ASSIGN(Connection * server, context.connect());
  SKIFF_ASSIGN(const std::vector<Selected> all, select(context, *server, options.selection));
  if (all.empty()) fmt::print(stderr, "No resources found in {} namespace.\n", context.ns());
  for (const Selected& one : all) SKIFF_TRY(act(context, *server, one, options));
  return {};
}

// Adds `rollout WORD` and gives its options for what only it takes.
std::pair<CLI::App*, std::shared_ptr<RolloutOptions>> add_rollout_verb(CLI::App& rollout,
                                                                       Context& context,
                                                                       int& exit_code,
                                                                       const char* word,
                                                                       const char* help, Act act) {
  auto options = std::make_shared<RolloutOptions>();
  CLI::App* verb = rollout.add_subcommand(word, help);
  add_selection(*verb, context, options->selection, "KIND NAME... or KIND/NAME...");
  verb->callback([options, &context, &exit_code, act = std::move(act)] {
    if (auto done = run_for_all(context, *options, act); !done) exit_code = report(done.error());
  });
  return {verb, options};
}

}  // namespace

void add_rollout(CLI::App& app, Context& context, int& exit_code) {
  CLI::App* rollout =
      app.add_subcommand("rollout", "Follow, list, take back, restart or pause rollouts");
  rollout->require_subcommand(1);
  rollout->footer(R"help(
Examples:
  skiff rollout status deployment/web --timeout 2m
  skiff rollout history deployment/web --revision 3
  skiff rollout undo statefulset/db --to-revision 2
  skiff rollout restart deployment web
  skiff rollout pause deployment/web
)help");
  auto [status, status_options] = add_rollout_verb(
      *rollout, context, exit_code, "status", "Follow a rollout until it is done", show_status);
  status->add_option("--timeout", status_options->timeout, "30s, 5m; 0s waits for ever")
      ->capture_default_str();
  status->add_option("--revision", status_options->revision, "Fail where another one runs");
  status->add_flag("-w,--watch,!--no-watch", status_options->watch, "Until it is done (default)");

  auto [history, history_options] =
      add_rollout_verb(*rollout, context, exit_code, "history", "List the revisions", show_history);
  history->add_option("--revision", history_options->revision, "Show the template of this one");

  auto [back, back_options] = add_rollout_verb(*rollout, context, exit_code, "undo",
                                               "Take back to an earlier revision", undo);
  back->add_option("--to-revision", back_options->revision, "0: the one before");
  add_output(*back, context, "json, yaml or name: what the server holds then");

  const auto restart = [](const json::value& object) { return restart_patch(object, stamp()); };
  const auto pause = [](const json::value& object) { return pause_patch(object, true); };
  const auto resume = [](const json::value& object) { return pause_patch(object, false); };
  for (const auto& [word, help, act] :
       {std::tuple{"restart", "Replace all pods, by and by", changing(restart, "restarted")},
        std::tuple{"pause", "Roll nothing out until resumed", changing(pause, "paused")},
        std::tuple{"resume", "Roll out again", changing(resume, "resumed")}}) {
    add_output(*add_rollout_verb(*rollout, context, exit_code, word, help, act).first, context,
               "json, yaml or name: what the server holds then");
  }
}

}  // namespace skiff::cli
