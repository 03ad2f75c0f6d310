// skiff delete: removes objects by name, by file or by label.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>
#include <thread>

#include "api/meta.h"
#include "cli/manifests.h"
#include "cli/verbs/verbs.h"

namespace skiff::cli {
namespace {

using namespace std::chrono_literals;

struct Options {
  std::vector<std::string> words = {};
  std::vector<std::string> files = {};
  std::string selector = {};
  bool all = false;
  bool no_wait = false;
  bool ignore_not_found = false;
  bool force = false;
  std::int64_t grace = -1;
};

struct Victim {
  api::Kind kind;
  std::string ns;
  std::string name;
};

Result<std::vector<Victim>> victims(Context& context, Connection& server, const Options& options) {
  std::vector<Victim> out;
  for (const std::string& file : options.files) {
    SKIFF_ASSIGN(const std::vector<json::value> objects, read_manifests(file));
    for (const json::value& object : objects) {
      SKIFF_ASSIGN(api::Kind kind, server.kind_of(object));
      std::string ns(api::ns(object));
      if (ns.empty() && kind.resource.namespaced) ns = context.ns();
      out.push_back({std::move(kind), std::move(ns), std::string(api::name(object))});
    }
  }
  if (!options.files.empty()) return out;
  SKIFF_ASSIGN(const std::vector<Target> targets, parse_targets(options.words));
  for (const Target& target : targets) {
    SKIFF_ASSIGN(api::Kind kind, server.kind(target.kind));
    const std::string ns = kind.resource.namespaced ? context.ns() : "";
    if (!target.name.empty()) {
      out.push_back({std::move(kind), ns, target.name});
      continue;
    }
    if (!options.all && options.selector.empty()) {
      return fail(Code::kBadRequest, "say which: names, -l SELECTOR or --all");
    }
    SKIFF_ASSIGN(const client::List list,
                 server.client().list(kind.resource, ns, {.label_selector = options.selector}));
    for (const Object& object : list.items) {
      out.push_back({kind, std::string(api::ns(*object)), std::string(api::name(*object))});
    }
  }
  return out;
}

void wait_until_gone(Connection& server, const Victim& victim) {
  for (auto pause = 10ms; pause < 2000ms; pause += pause / 8) {
    const auto still = server.client().get(victim.kind.resource, victim.ns, victim.name);
    if (!still) return;
    std::this_thread::sleep_for(pause);
  }
}

Result<void> run_delete(Context& context, const Options& options) {
  SKIFF_ASSIGN(Connection * server, context.connect());
  SKIFF_ASSIGN(const std::vector<Victim> all, victims(context, *server, options));
  if (all.empty()) fmt::print("nothing to delete\n");
  for (const Victim& victim : all) {
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
    fmt::print("{}/{} deleted\n", victim.kind.singular, victim.name);
  }
  return {};
}

}  // namespace

void add_delete(CLI::App& app, Context& context, int& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("delete", "Delete objects");
  verb->add_option("target", options->words, "KIND NAME... or KIND/NAME...");
  verb->add_option("-f,--filename", options->files, "Delete what these files describe");
  verb->add_option("-l,--selector", options->selector, "Label selector");
  verb->add_flag("--all", options->all, "Every object of the kind in the namespace");
  verb->add_flag("--force", options->force, "At once, without grace");
  verb->add_option("--grace-period", options->grace, "Seconds a pod has to end");
  verb->add_flag("--ignore-not-found", options->ignore_not_found, "A missing object is no error");
  verb->add_flag("--no-wait", options->no_wait, "Return before they are gone");
  verb->add_option("-n,--namespace", context.globals.ns, "Namespace");
  verb->callback([options, &context, &exit_code] {
    if (auto done = run_delete(context, *options); !done) exit_code = report(done.error());
  });
}

}  // namespace skiff::cli
