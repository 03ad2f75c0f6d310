// skiff describe: an object in full, with its pods and events.
#include "cli/describe.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <memory>

#include "api/meta.h"
#include "api/metrics/metrics.h"
#include "cli/selection.h"
#include "cli/top_text.h"
#include "cli/verbs/verbs.h"

namespace skiff::cli {
namespace {

Result<void> describe_one(Connection& server, const api::Kind& kind, const std::string& ns,
                          Object object) {
  std::vector<Object> pods;
  if (kind.resource.group == "kubeflow.org") {
    SKIFF_ASSIGN(pods, pods_of_job(server, ns, api::name(*object), kind.resource.kind));
  }
  std::vector<Object> about = pods;
  about.push_back(object);
  SKIFF_ASSIGN(const std::vector<Object> events, events_of(server, ns, about));
  const Time now = std::chrono::floor<Duration>(std::chrono::system_clock::now());
  fmt::print("{}", describe_text(*object, pods, events, now));
  if (pods.empty()) return {};
  // Where nobody measures there is nothing to add.
  auto used = server.client().list(
      api::pod_metrics_kind().resource, ns,
      {.label_selector = fmt::format("training.kubeflow.org/job-name={}", api::name(*object))});
  if (!used) return {};
  // A job of another kind may have the same name.
  std::erase_if(used->items, [&](const Object& usage) {
    return std::ranges::none_of(
        pods, [&](const Object& pod) { return api::name(*pod) == api::name(*usage); });
  });
  if (!used->items.empty()) fmt::print("Use now:\n{}", top_replicas(used->items, {}));
  return {};
}

Result<void> run_describe(Context& context, const Selection& selection) {
  SKIFF_ASSIGN(Connection * server, context.connect());
  SKIFF_ASSIGN(const std::vector<Selected> all, select(context, *server, selection, true));
  if (all.empty()) fmt::print(stderr, "No objects found.\n");
  json::array objects;
  bool first = true;
  for (const Selected& one : all) {
    SKIFF_ASSIGN(json::value object, server->client().get(one.kind.resource, one.ns, one.name));
    if (context.globals.output == "json") {
      objects.push_back(std::move(object));
      continue;
    }
    if (!first) fmt::print("\n\n");
    first = false;
    SKIFF_TRY(describe_one(*server, one.kind, one.ns,
                           std::make_shared<const json::value>(std::move(object))));
  }
  if (objects.empty()) return {};
  return print_objects(context, *server, std::move(objects), all.size() != 1);
}

}  // namespace

void add_describe(CLI::App& app, Context& context, int& exit_code) {
  auto selection = std::make_shared<Selection>();
  CLI::App* verb =
      app.add_subcommand("describe", "Show an object in full, with its pods and events");
  add_selection(*verb, context, *selection, "KIND, KIND NAME... or KIND/NAME...");
  verb->footer(R"help(
Examples:
  skiff describe tfjob/mnist                     with its pods and events
  skiff describe node                            every node
  skiff describe pods -l app=web -A
)help");
  verb->callback([selection, &context, &exit_code] {
    if (auto done = run_describe(context, *selection); !done) exit_code = report(done.error());
  });
}

}  // namespace skiff::cli
