// skiff patch: changes fields of objects by a patch.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <iterator>
#include <memory>

#include "api/meta.h"
#include "base/yaml.h"
#include "cli/selection.h"
#include "cli/verbs/verbs.h"
#include "client/remote/requests.h"

namespace skiff::cli {
namespace {

struct PatchOptions {
  Selection selection = {};
  std::string type = {};  // empty: strategic, and merge for kinds that have no strategic patch
  std::string patch = {};
  std::string file = {};
  std::string subresource = {};
  std::string dry_run = {};  // server

  bool only_checks() const { return !dry_run.empty() && dry_run != "none"; }
};

// JSON or YAML, as kubectl takes it.
Result<json::value> read_patch(const PatchOptions& options) {
  if (options.patch.empty() == options.file.empty()) {
    return fail(Code::kBadRequest, "give the patch with -p or with --patch-file");
  }
  std::string text = options.patch;
  if (!options.file.empty()) {
    std::ifstream file(options.file, std::ios::binary);
    text.assign(std::istreambuf_iterator<char>(file), {});
    if (!file) return fail(Code::kNotFound, fmt::format("cannot read {}", options.file));
  }
  auto patch = yaml::parse(text);
  if (!patch) {
    return fail(Code::kBadRequest, "the patch is neither JSON nor YAML: " + patch.error().message);
  }
  if (!patch->is_object() && !patch->is_array()) {
    return fail(Code::kBadRequest, "the patch must be an object, or a list for --type json");
  }
  return patch;
}

Result<json::value> send_patch(Connection& server, const Selected& what,
                               const PatchOptions& options, const json::value& patch,
                               const std::string& type) {
  std::string target =
      client::object_target(what.kind.resource, what.ns, what.name, options.subresource);
  target += "?fieldManager=skiff";
  if (options.only_checks()) target += "&dryRun=All";
  const std::string media = type == "strategic" ? "strategic-merge-patch"
                            : type == "merge"   ? "merge-patch"
                                                : "json-patch";
  SKIFF_ASSIGN(
      const http::Response answer,
      server.send({.method = "PATCH",
                   .target = target,
                   .headers = {{"Content-Type", fmt::format("application/{}+json", media)}},
                   .body = json::serialize(patch)}));
  return json::parse(answer.body);
}

Result<void> run_patch(Context& context, const PatchOptions& options) {
  SKIFF_ASSIGN(const json::value patch, read_patch(options));
  SKIFF_ASSIGN(Connection * server, context.connect());
  SKIFF_ASSIGN(const std::vector<Selected> all, select(context, *server, options.selection));
  for (const Selected& one : all) {
    SKIFF_ASSIGN(const json::value before,
                 server->client().get(one.kind.resource, one.ns, one.name));
    std::string type = options.type;
    if (type.empty()) type = patch.is_array() ? "json" : "strategic";
    auto done = send_patch(*server, one, options, patch, type);
    if (!done && options.type.empty() && done.error().code == Code::kUnsupportedMediaType) {
      done = send_patch(*server, one, options, patch, "merge");
    }
    if (!done) return std::unexpected(std::move(done).error());
    const bool same = api::resource_version(*done) == api::resource_version(before);
    std::string how = same && !options.only_checks() ? "patched (no change)" : "patched";
    if (options.only_checks()) how += " (server dry run)";
    SKIFF_TRY(print_done(context, *server, one, *done, how));
  }
  return {};
}

}  // namespace

void add_patch(CLI::App& app, Context& context, int& exit_code) {
  auto options = std::make_shared<PatchOptions>();
  CLI::App* verb = app.add_subcommand("patch", "Change fields of objects");
  add_selection(*verb, context, options->selection, "KIND NAME... or KIND/NAME...");
  verb->add_option("-p,--patch", options->patch, "The patch, JSON or YAML");
  verb->add_option("--patch-file", options->file, "A file with the patch");
  verb->add_option(
          "--type", options->type,
          "json (a list of operations), merge or strategic (lists by their keys); default: "
          "strategic where the kind has it, else merge")
      ->check(CLI::IsMember({"json", "merge", "strategic"}));
  verb->add_option("--subresource", options->subresource, "status or scale");
  verb->add_flag("--dry-run{server}", options->dry_run, "Let the server check it, change nothing");
  add_output(*verb, context, "json, yaml or name: what the server holds then");
  verb->footer(R"help(
Examples:
  skiff patch tfjob mnist -p '{"spec": {"runPolicy": {"suspend": true}}}'
  skiff patch pod/web --type json -p '[{"op": "add", "path": "/metadata/labels/a", "value": "b"}]'
  skiff patch node n1 --type merge -p 'spec: {unschedulable: true}'
  skiff patch tfjob mnist --subresource status --type merge --patch-file status.yaml
)help");
  verb->callback([options, &context, &exit_code] {
    if (auto done = run_patch(context, *options); !done) exit_code = report(done.error());
  });
}

}  // namespace skiff::cli
