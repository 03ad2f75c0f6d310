// skiff apply: makes the server hold what the files say.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "api/meta.h"
#include "cli/manifests.h"
#include "cli/selection.h"
#include "cli/verbs/verbs.h"

namespace skiff::cli {
namespace {

struct ApplyOptions {
  std::vector<std::string> files = {};
  bool create_namespace = false;
  bool server_side = false;
  bool force_conflicts = false;
  std::string field_manager = "skiff";
};

// What the server says, with what to do about the errors people meet first.
Error with_remedy(Error error, const json::value& object, const std::string& ns) {
  if (error.code == Code::kNotFound && error.resource == "namespaces") {
    error.message += fmt::format("; add --create-namespace, or name another with -n (now: {})", ns);
  }
  const std::string_view name = api::name(object);
  error.message = fmt::format(
      "{} {}: {}", api::kind(object),
      name.empty() ? json::get_string(object, {"metadata", "generateName"}) : name, error.message);
  return error;
}

Result<void> make_namespace(Connection& server, const std::string& ns) {
  SKIFF_ASSIGN(const api::Kind kind, server.kind("namespaces"));
  const auto done = server.client().write(
      {.verb = client::Verb::kCreate,
       .resource = kind.resource,
       .body =
           json::value{{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", ns}}}}});
  if (!done && done.error().code != Code::kAlreadyExists) return std::unexpected(done.error());
  if (done) fmt::print("namespace/{} created\n", ns);
  return {};
}

struct Applied {
  json::value object = {};
  std::string_view how = {};
};

Result<Applied> apply_on_server(Connection& server, const json::value& object,
                                const api::Kind& kind, const std::string& ns,
                                const ApplyOptions& options) {
  if (api::name(object).empty()) {
    return fail(Code::kBadRequest, "server-side apply needs metadata.name");
  }
  auto made = server.client().write({.verb = client::Verb::kApply,
                                     .resource = kind.resource,
                                     .ns = ns,
                                     .name = std::string(api::name(object)),
                                     .body = object,
                                     .field_manager = options.field_manager,
                                     .force = options.force_conflicts});
  if (!made && made.error().code == Code::kConflict) {
    made.error().message +=
        "; take these fields over with --force-conflicts, or leave them out of the file";
  }
  if (!made) return std::unexpected(std::move(made).error());
  return Applied{std::move(*made), "serverside-applied"};
}

Result<Applied> apply_one(Connection& server, const json::value& object, const api::Kind& kind,
                          const std::string& ns) {
  const std::string name(api::name(object));
  client::Write write{.verb = client::Verb::kCreate,
                      .resource = kind.resource,
                      .ns = ns,
                      .body = with_last_applied(object)};
  if (name.empty()) {
    SKIFF_ASSIGN(json::value made, server.client().write(write));
    return Applied{std::move(made), "created"};
  }
  auto live = server.client().get(kind.resource, ns, name);
  if (!live && live.error().code == Code::kNotFound) {
    SKIFF_ASSIGN(json::value made, server.client().write(write));
    return Applied{std::move(made), "created"};
  }
  if (!live) return std::unexpected(live.error());
  json::object patch = three_way_patch(*live, object);
  if (patch.empty()) return Applied{std::move(*live), "unchanged"};
  write.verb = client::Verb::kMergePatch;
  write.name = name;
  write.body = std::move(patch);
  SKIFF_ASSIGN(json::value made, server.client().write(write));
  return Applied{std::move(made), "configured"};
}

// Every object is tried: one bad one does not keep the others from the server.
int run_apply(Context& context, const ApplyOptions& options) {
  auto server = context.connect();
  if (!server) return report(server.error());
  int exit_code = 0;
  for (const std::string& file : options.files) {
    auto objects = read_manifests(file);
    if (!objects) {
      exit_code = report(objects.error());
      continue;
    }
    for (const json::value& object : *objects) {
      auto kind = (*server)->kind_of(object);
      if (!kind) {
        exit_code = report(kind.error());
        continue;
      }
      std::string ns(api::ns(object));
      if (kind->resource.namespaced && (ns.empty() || !context.globals.ns.empty()))
        ns = context.ns();
      if (!kind->resource.namespaced) ns.clear();
      json::value body = object;
      if (!ns.empty()) json::set(body, {"metadata", "namespace"}, json::string(ns));
      if (options.create_namespace && !ns.empty()) {
        if (auto made = make_namespace(**server, ns); !made) exit_code = report(made.error());
      }
      auto done = options.server_side ? apply_on_server(**server, body, *kind, ns, options)
                                      : apply_one(**server, body, *kind, ns);
      if (!done) {
        exit_code = report(with_remedy(done.error(), object, ns));
        continue;
      }
      const Selected what{*kind, ns, std::string(api::name(done->object))};
      const auto printed = print_done(context, **server, what, done->object, done->how);
      if (!printed) exit_code = report(printed.error());
    }
  }
  return exit_code;
}

}  // namespace

void add_apply(CLI::App& app, Context& context, int& exit_code) {
  auto options = std::make_shared<ApplyOptions>();
  CLI::App* verb = app.add_subcommand("apply", "Create or change objects from YAML or JSON files");
  verb->add_option("-f,--filename", options->files, "File, folder or - for standard input")
      ->required();
  verb->add_flag("--create-namespace", options->create_namespace, "Make a missing namespace first");
  verb->add_flag("--server-side", options->server_side,
                 "The server merges, and remembers who owns which field");
  verb->add_flag("--force-conflicts", options->force_conflicts,
                 "With --server-side: take fields that others own");
  verb->add_option("--field-manager", options->field_manager, "With --server-side: who we are")
      ->capture_default_str();
  add_output(*verb, context, "json, yaml or name: what the server holds then");
  verb->footer(R"help(
Examples:
  skiff apply -f job.yaml
  skiff apply -f manifests/ -n team --create-namespace
  cat job.yaml | skiff apply -f -
  skiff apply -f job.yaml --server-side --field-manager ci
)help");
  verb->callback([options, &context, &exit_code] { exit_code = run_apply(context, *options); });
}

}  // namespace skiff::cli
