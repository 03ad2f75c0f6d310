// skiff apply: makes the server hold what the files say.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "api/meta.h"
#include "cli/manifests.h"
#include "cli/printer.h"
#include "cli/verbs/verbs.h"

namespace skiff::cli {
namespace {

struct Options {
  std::vector<std::string> files = {};
  bool create_namespace = false;
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

Result<std::string> apply_one(Connection& server, const json::value& object, const api::Kind& kind,
                              const std::string& ns) {
  const std::string name(api::name(object));
  client::Write write{.verb = client::Verb::kCreate,
                      .resource = kind.resource,
                      .ns = ns,
                      .body = with_last_applied(object)};
  if (name.empty()) {
    SKIFF_ASSIGN(const json::value made, server.client().write(write));
    return fmt::format("{}/{} created", kind.singular, api::name(made));
  }
  auto live = server.client().get(kind.resource, ns, name);
  if (!live && live.error().code == Code::kNotFound) {
    SKIFF_TRY(server.client().write(write));
    return fmt::format("{}/{} created", kind.singular, name);
  }
  if (!live) return std::unexpected(live.error());
  json::object patch = three_way_patch(*live, object);
  if (patch.empty()) return fmt::format("{}/{} unchanged", kind.singular, name);
  write.verb = client::Verb::kMergePatch;
  write.name = name;
  write.body = std::move(patch);
  SKIFF_TRY(server.client().write(write));
  return fmt::format("{}/{} configured", kind.singular, name);
}

// Every object is tried: one bad one does not keep the others from the server.
int run_apply(Context& context, const Options& options) {
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
      auto done = apply_one(**server, body, *kind, ns);
      if (done) {
        fmt::print("{}\n", *done);
      } else {
        exit_code = report(with_remedy(done.error(), object, ns));
      }
    }
  }
  return exit_code;
}

}  // namespace

void add_apply(CLI::App& app, Context& context, int& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("apply", "Create or change objects from YAML or JSON files");
  verb->add_option("-f,--filename", options->files, "File, folder or - for standard input")
      ->required();
  verb->add_option("-n,--namespace", context.globals.ns, "Namespace");
  verb->add_flag("--create-namespace", options->create_namespace, "Make a missing namespace first");
  verb->callback([options, &context, &exit_code] { exit_code = run_apply(context, *options); });
}

}  // namespace skiff::cli
