// skiff why: the plain-language reason.
#include "cli/why.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>

#include "api/meta.h"
#include "cli/printer.h"
#include "cli/verbs/verbs.h"

namespace skiff::cli {

Result<std::vector<std::string>> reasons(Connection& server, const api::Kind& kind,
                                         const std::string& ns, const std::string& name) {
  SKIFF_ASSIGN(json::value object, server.client().get(kind.resource, ns, name));
  Situation situation{.object = std::make_shared<const json::value>(std::move(object))};
  if (kind.resource.kind != "Pod") {
    SKIFF_ASSIGN(situation.pods, pods_of_job(server, ns, name, kind.resource.kind));
  }
  std::vector<Object> about = situation.pods;
  about.push_back(situation.object);
  SKIFF_ASSIGN(situation.events, events_of(server, ns, about));
  return explain(situation, std::chrono::floor<Duration>(std::chrono::system_clock::now()));
}

namespace {

Result<void> run_why(Context& context, const std::vector<std::string>& words) {
  SKIFF_ASSIGN(const std::vector<Target> targets, parse_targets(words));
  if (targets.size() != 1 || targets.front().name.empty()) {
    return fail(Code::kBadRequest, "name one object: skiff why tfjob/NAME");
  }
  SKIFF_ASSIGN(Connection * server, context.connect());
  SKIFF_ASSIGN(const api::Kind kind, server->kind(targets.front().kind));
  const std::string ns = kind.resource.namespaced ? context.ns() : "";
  SKIFF_ASSIGN(const auto told, reasons(*server, kind, ns, targets.front().name));
  if (context.globals.output == "json") {
    json::array lines;
    for (const std::string& line : told) lines.emplace_back(line);
    fmt::print("{}\n", json::pretty(json::object{{"reasons", std::move(lines)}}));
    return {};
  }
  for (const std::string& line : told) fmt::print("{}\n", printable(line));
  return {};
}

}  // namespace

void add_why(CLI::App& app, Context& context, int& exit_code) {
  auto words = std::make_shared<std::vector<std::string>>();
  CLI::App* verb = app.add_subcommand("why", "Say in plain words why something waits or failed");
  verb->add_option("target", *words, "KIND/NAME")->required();
  verb->callback([words, &context, &exit_code] {
    if (auto done = run_why(context, *words); !done) exit_code = report(done.error());
  });
}

}  // namespace skiff::cli
