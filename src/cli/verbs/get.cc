// skiff get: lists objects as tables, JSON, YAML or names; -w goes on with changes.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "api/meta.h"
#include "base/http.h"
#include "base/strings.h"
#include "cli/output.h"
#include "cli/printer.h"
#include "cli/selection.h"
#include "cli/verbs/verbs.h"

namespace skiff::cli {
namespace {

constexpr const char* kTable = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

struct GetOptions {
  std::vector<std::string> words = {};
  bool watch = false;
  bool kinds = false;
};

std::string query_of(const Globals& globals, const std::string& name) {
  std::string query = "?limit=0";
  if (!globals.selector.empty()) query += "&labelSelector=" + http::escape(globals.selector);
  std::string fields = globals.field_selector;
  if (!name.empty()) fields += (fields.empty() ? "" : ",") + ("metadata.name=" + name);
  if (!fields.empty()) query += "&fieldSelector=" + http::escape(fields);
  return query;
}

Result<void> print_objects_table(Context& context, Connection& server, const api::Kind& kind,
                                 const std::string& ns, const std::string& name,
                                 const GetOptions& options, bool several) {
  const bool wide = context.globals.output == "wide";
  const bool with_namespace = kind.resource.namespaced && context.globals.all_namespaces;
  const std::string query = query_of(context.globals, name);
  SKIFF_ASSIGN(const http::Response answer,
               server.send({.target = kind.resource.collection_path(ns) + query,
                            .headers = {{"Accept", kTable}}}));
  SKIFF_ASSIGN(const json::value table, json::parse(answer.body));
  const bool empty = json::get_array(table, {"rows"}).empty();
  if (empty && !name.empty()) {
    return fail(Code::kNotFound, fmt::format("{} \"{}\" not found", kind.resource.key(), name));
  }
  if (empty && !options.watch) {
    fmt::print(stderr, "No {} found{}.\n", kind.resource.plural,
               ns.empty() ? "" : fmt::format(" in namespace {}", ns));
    return {};
  }
  if (several) fmt::print("{}:\n", kind.resource.plural);
  fmt::print("{}", table_text(table, wide, with_namespace, true));
  if (several) fmt::print("\n");
  if (!options.watch) return {};
  std::fflush(stdout);
  json::value definitions = table.at("columnDefinitions");
  return server.lines(
      {.target = fmt::format("{}{}&watch=1&resourceVersion={}", kind.resource.collection_path(ns),
                             query, json::get_string(table, {"metadata", "resourceVersion"})),
       .headers = {{"Accept", kTable}}},
      [&](std::string_view line) {
        auto event = json::parse(line);
        if (!event || json::get_string(*event, {"type"}) == "BOOKMARK") return true;
        json::value rows = event->at("object");
        if (rows.is_object()) rows.as_object()["columnDefinitions"] = definitions;
        fmt::print("{}", table_text(rows, wide, with_namespace, false));
        return std::fflush(stdout) == 0;
      });
}

Result<void> collect(const Globals& globals, Connection& server, const api::Kind& kind,
                     const std::string& ns, const std::string& name, json::array& out) {
  if (!name.empty()) {
    SKIFF_ASSIGN(json::value object, server.client().get(kind.resource, ns, name));
    out.push_back(std::move(object));
    return {};
  }
  SKIFF_ASSIGN(const client::List list,
               server.client().list(
                   kind.resource, ns,
                   {.label_selector = globals.selector, .field_selector = globals.field_selector}));
  for (const Object& object : list.items) out.push_back(*object);
  return {};
}

Result<void> print_kinds(Connection& server) {
  SKIFF_ASSIGN(const std::vector<api::Kind> kinds, server.kinds());
  std::vector<std::vector<std::string>> rows = {
      {"NAME", "SHORT", "APIVERSION", "NAMESPACED", "KIND"}};
  for (const api::Kind& kind : kinds) {
    rows.push_back({kind.resource.plural, join(kind.short_names, ","), kind.resource.api_version(),
                    kind.resource.namespaced ? "true" : "false", kind.resource.kind});
  }
  fmt::print("{}", columns(rows));
  return {};
}

Result<void> run_get(Context& context, const GetOptions& options) {
  SKIFF_ASSIGN(Connection * server, context.connect());
  if (options.kinds) return print_kinds(*server);
  SKIFF_ASSIGN(const std::vector<Target> targets, parse_targets(options.words));
  SKIFF_ASSIGN(const Format format, parse_format(context.globals.output));
  json::array objects;
  for (const Target& target : targets) {
    SKIFF_ASSIGN(const api::Kind kind, server->kind(target.kind));
    const bool every = context.globals.all_namespaces || !kind.resource.namespaced;
    const std::string ns = every ? "" : context.ns();
    if (format.table()) {
      SKIFF_TRY(print_objects_table(context, *server, kind, ns, target.name, options,
                                    targets.size() > 1));
    } else {
      SKIFF_TRY(collect(context.globals, *server, kind, ns, target.name, objects));
    }
  }
  if (format.table()) return {};
  return print_objects(context, *server, std::move(objects),
                       targets.size() != 1 || targets.front().name.empty());
}

}  // namespace

void add_get(CLI::App& app, Context& context, int& exit_code) {
  auto options = std::make_shared<GetOptions>();
  CLI::App* verb = app.add_subcommand("get", "List objects");
  verb->add_option("target", options->words, "KIND[,KIND...] [NAME...] or KIND/NAME...");
  verb->add_flag("-A,--all-namespaces", context.globals.all_namespaces, "All namespaces");
  add_output(*verb, context, "json, yaml, wide, name, jsonpath=TEMPLATE or custom-columns=...");
  verb->add_option("-l,--selector", context.globals.selector, "Label selector");
  verb->add_option("--field-selector", context.globals.field_selector, "Field selector");
  verb->add_flag("-w,--watch", options->watch, "Go on and print changes");
  verb->footer(R"help(
Examples:
  skiff get pods                                 of the namespace, as a table
  skiff get tfjobs,pytorchjobs,pods -A           several kinds, all namespaces
  skiff get pods -l app=web --field-selector status.phase=Running
  skiff get pod/web -o yaml
  skiff get pods -o jsonpath='{range .items[*]}{.metadata.name}{"\n"}{end}'
  skiff get pods -o custom-columns=NAME:.metadata.name,IP:.status.podIP
  skiff get tfjobs -w                            and go on as they change
)help");
  verb->add_flag("--kinds", options->kinds, "List the kinds the server has");
  verb->callback([options, &context, &exit_code] {
    if (auto done = run_get(context, *options); !done) exit_code = report(done.error());
  });
}

}  // namespace skiff::cli
