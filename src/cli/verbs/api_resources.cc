// skiff api-resources: which kinds the server has.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>
#include <set>

#include "base/strings.h"
#include "cli/printer.h"
#include "cli/verbs/verbs.h"

namespace skiff::cli {
namespace {

struct ApiResourcesOptions {
  std::optional<std::string> group = {};
  std::optional<bool> namespaced = {};
  std::vector<std::string> verbs = {};
  bool no_headers = false;
};

bool shown(const client::Discovered& one, const ApiResourcesOptions& options) {
  const api::Resource& r = one.kind.resource;
  if (options.group && r.group != *options.group) return false;
  if (options.namespaced && r.namespaced != *options.namespaced) return false;
  return std::ranges::all_of(options.verbs, [&](const std::string& verb) {
    return std::ranges::find(one.verbs, verb) != one.verbs.end();
  });
}

json::array strings_array(const std::vector<std::string>& all) {
  json::array out;
  for (const std::string& one : all) out.emplace_back(one);
  return out;
}

void print_resources_json(const std::vector<client::Discovered>& all) {
  json::array out;
  for (const client::Discovered& one : all) {
    const api::Resource& r = one.kind.resource;
    out.push_back(json::object{{"name", r.plural},
                               {"shortNames", strings_array(one.kind.short_names)},
                               {"apiVersion", r.api_version()},
                               {"namespaced", r.namespaced},
                               {"kind", r.kind},
                               {"verbs", strings_array(one.verbs)},
                               {"categories", strings_array(one.kind.categories)}});
  }
  fmt::print("{}\n", json::pretty(out));
}

void print_resources_table(const std::vector<client::Discovered>& all, bool wide, bool header) {
  std::vector<std::vector<std::string>> rows;
  if (header) {
    rows.push_back({"NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND"});
    if (wide) rows.front().insert(rows.front().end(), {"VERBS", "CATEGORIES"});
  }
  for (const client::Discovered& one : all) {
    const api::Resource& r = one.kind.resource;
    rows.push_back({r.plural, join(one.kind.short_names, ","), r.api_version(),
                    r.namespaced ? "true" : "false", r.kind});
    if (wide) {
      rows.back().push_back(join(one.verbs, ","));
      rows.back().push_back(join(one.kind.categories, ","));
    }
  }
  fmt::print("{}", columns(rows));
}

Result<void> run_api_resources(Context& context, const ApiResourcesOptions& options) {
  SKIFF_ASSIGN(Connection * server, context.connect());
  SKIFF_ASSIGN(std::vector<client::Discovered> all, server->resources());
  // Of several versions the server's preferred one comes first, and is enough.
  std::set<std::string> seen;
  std::erase_if(all, [&](const client::Discovered& one) {
    return !shown(one, options) || !seen.insert(one.kind.resource.key()).second;
  });
  std::ranges::sort(all, {}, [](const client::Discovered& one) {
    return std::pair(one.kind.resource.group, one.kind.resource.plural);
  });
  const std::string& output = context.globals.output;
  if (output == "json") {
    print_resources_json(all);
  } else if (output == "name") {
    for (const client::Discovered& one : all) fmt::print("{}\n", one.kind.resource.key());
  } else {
    print_resources_table(all, output == "wide", !options.no_headers);
  }
  return {};
}

}  // namespace

void add_api_resources(CLI::App& app, Context& context, int& exit_code) {
  auto options = std::make_shared<ApiResourcesOptions>();
  CLI::App* verb = app.add_subcommand("api-resources", "List the kinds that the server has");
  verb->add_option("-o,--output", context.globals.output, "wide, name or json")
      ->check(CLI::IsMember({"wide", "name", "json"}));
  verb->add_option("--api-group", options->group, "Only this group; '' is the core group");
  auto namespaced = std::make_shared<bool>(true);
  verb->add_flag("--namespaced", *namespaced, "Only kinds in namespaces; =false: only the others");
  verb->add_option("--verbs", options->verbs, "Only kinds that can do all of these")
      ->delimiter(',');
  verb->add_flag("--no-headers", options->no_headers, "Rows only");
  verb->footer(R"help(
Examples:
  skiff api-resources -o wide                    with what can be done to them
  skiff api-resources --api-group kubeflow.org
  skiff api-resources --namespaced=false -o name
)help");
  verb->callback([options, namespaced, verb, &context, &exit_code] {
    if (verb->count("--namespaced") > 0) options->namespaced = *namespaced;
    if (auto done = run_api_resources(context, *options); !done) exit_code = report(done.error());
  });
}

}  // namespace skiff::cli
