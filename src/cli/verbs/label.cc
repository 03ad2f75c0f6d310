// skiff label and skiff annotate: set and remove labels and annotations.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "api/meta.h"
#include "cli/metadata_change.h"
#include "cli/selection.h"
#include "cli/verbs/verbs.h"

namespace skiff::cli {
namespace {

constexpr int kAttempts = 5;

struct Words {
  const char* verb;
  const char* field;
  const char* done;
  const char* removed;
  const char* nothing;
};
constexpr Words kLabel{"label", "labels", "labeled", "unlabeled", "not labeled"};
constexpr Words kAnnotate{"annotate", "annotations", "annotated", "annotated", "not annotated"};

struct LabelOptions {
  Selection selection = {};  // its words hold the changes, too
  bool overwrite = false;
  bool list = false;
  std::string resource_version = {};
};

void print_list(const Selected& what, const json::value& object, const Words& words) {
  fmt::print("Listing {} for {}:\n", words.field, what.shown());
  for (const auto& [key, value] : json::get_object(object, {"metadata", words.field})) {
    fmt::print(" {}={}\n", std::string_view(key),
               value.is_string() ? json::view(value.get_string()) : std::string_view());
  }
}

Result<void> change_one(Context& context, Connection& server, const Selected& what,
                        const MetadataChange& change, const LabelOptions& options,
                        const Words& words) {
  for (int attempt = 1;; ++attempt) {
    SKIFF_ASSIGN(const json::value object,
                 server.client().get(what.kind.resource, what.ns, what.name));
    if (options.list) {
      print_list(what, object, words);
      return {};
    }
    auto patch = metadata_patch(object, words.field, change, options.overwrite);
    if (!patch) {
      patch.error().message = fmt::format("{}: {}", what.shown(), patch.error().message);
      return std::unexpected(std::move(patch).error());
    }
    if (patch->empty()) return print_done(context, server, what, object, words.nothing);
    // Without --overwrite nobody may have set the key since we looked.
    std::string version = options.resource_version;
    if (version.empty() && !options.overwrite) version = api::resource_version(object);
    const auto done = server.client().write({.verb = client::Verb::kMergePatch,
                                             .resource = what.kind.resource,
                                             .ns = what.ns,
                                             .name = what.name,
                                             .body = *patch,
                                             .resource_version = version});
    const bool again = !done && done.error().code == Code::kConflict && attempt < kAttempts &&
                       options.resource_version.empty();
    if (again) continue;
    if (!done) return std::unexpected(done.error());
    return print_done(context, server, what, *done,
                      change.set.empty() ? words.removed : words.done);
  }
}

Result<void> run_change(Context& context, LabelOptions options, const Words& words) {
  std::vector<std::string> changes;
  std::erase_if(options.selection.words, [&](const std::string& word) {
    if (is_change(word)) changes.push_back(word);
    return is_change(word);
  });
  if (changes.empty() && !options.list) {
    return fail(Code::kBadRequest, fmt::format("at least one {} change is needed: KEY=VALUE or "
                                               "KEY- (--list shows what is there)",
                                               words.verb));
  }
  SKIFF_ASSIGN(const MetadataChange change, parse_changes(changes));
  SKIFF_ASSIGN(Connection * server, context.connect());
  SKIFF_ASSIGN(const std::vector<Selected> all, select(context, *server, options.selection));
  if (all.empty()) fmt::print(stderr, "No objects found.\n");
  for (const Selected& one : all) {
    SKIFF_TRY(change_one(context, *server, one, change, options, words));
  }
  return {};
}

void add_verb(CLI::App& app, Context& context, int& exit_code, const Words& words,
              const char* about, const char* footer) {
  auto options = std::make_shared<LabelOptions>();
  CLI::App* verb = app.add_subcommand(words.verb, about);
  add_selection(*verb, context, options->selection,
                "KIND NAME... or KIND/NAME..., then KEY=VALUE sets and KEY- removes");
  verb->add_flag("--overwrite", options->overwrite, "Replace a value that is there");
  verb->add_flag("--list", options->list, "Show what is there");
  verb->add_option("--resource-version", options->resource_version,
                   "Only where the object is still this version");
  add_output(*verb, context, "json, yaml or name: what the server holds then");
  verb->footer(footer);
  verb->callback([options, &words, &context, &exit_code] {
    if (auto done = run_change(context, *options, words); !done) exit_code = report(done.error());
  });
}

}  // namespace

void add_label(CLI::App& app, Context& context, int& exit_code) {
  add_verb(app, context, exit_code, kLabel, "Set and remove labels", R"help(
Examples:
  skiff label pod web tier=front team=a
  skiff label pods --all tier=front --overwrite
  skiff label pods -l team=a team-               removes it
  skiff label nodes n1 --list
)help");
  add_verb(app, context, exit_code, kAnnotate, "Set and remove annotations", R"help(
Examples:
  skiff annotate tfjob/mnist note='learning rate 0.1'
  skiff annotate tfjob/mnist note-               removes it
)help");
}

}  // namespace skiff::cli
