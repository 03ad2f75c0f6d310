// skiff describe: an object in full, with its pods and events.
#include "cli/describe.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>

#include "api/meta.h"
#include "cli/verbs/verbs.h"

namespace skiff::cli {
namespace {

Result<void> describe_one(Connection& server, const api::Kind& kind, const std::string& ns,
                          Object object) {
  std::vector<Object> pods;
  if (kind.resource.group == "kubeflow.org") {
    SKIFF_ASSIGN(pods, pods_of_job(server, ns, api::name(*object)));
  }
  std::vector<Object> about = pods;
  about.push_back(object);
  SKIFF_ASSIGN(const std::vector<Object> events, events_of(server, ns, about));
  const Time now = std::chrono::floor<Duration>(std::chrono::system_clock::now());
  fmt::print("{}", describe_text(*object, pods, events, now));
  return {};
}

Result<void> run_describe(Context& context, const std::vector<std::string>& words) {
  SKIFF_ASSIGN(const std::vector<Target> targets, parse_targets(words));
  SKIFF_ASSIGN(Connection * server, context.connect());
  bool first = true;
  for (const Target& target : targets) {
    SKIFF_ASSIGN(const api::Kind kind, server->kind(target.kind));
    const std::string ns = kind.resource.namespaced ? context.ns() : "";
    std::vector<Object> objects;
    if (target.name.empty()) {
      SKIFF_ASSIGN(client::List list, server->client().list(kind.resource, ns, {}));
      objects = std::move(list.items);
    } else {
      SKIFF_ASSIGN(json::value object, server->client().get(kind.resource, ns, target.name));
      objects.push_back(std::make_shared<const json::value>(std::move(object)));
    }
    for (const Object& object : objects) {
      if (!first) fmt::print("\n\n");
      first = false;
      SKIFF_TRY(describe_one(*server, kind, ns, object));
    }
  }
  return {};
}

}  // namespace

void add_describe(CLI::App& app, Context& context, int& exit_code) {
  auto words = std::make_shared<std::vector<std::string>>();
  CLI::App* verb =
      app.add_subcommand("describe", "Show an object in full, with its pods and events");
  verb->add_option("target", *words, "KIND NAME or KIND/NAME")->required();
  verb->add_option("-n,--namespace", context.globals.ns, "Namespace");
  verb->callback([words, &context, &exit_code] {
    if (auto done = run_describe(context, *words); !done) exit_code = report(done.error());
  });
}

}  // namespace skiff::cli
