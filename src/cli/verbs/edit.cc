// skiff edit: an object in an editor; what was changed is sent, and nothing that was typed is lost.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>

#include "api/meta.h"
#include "cli/edit_text.h"
#include "cli/selection.h"
#include "cli/verbs/verbs.h"

namespace skiff::cli {
namespace {

struct EditOptions {
  Selection selection = {};
  std::string subresource = {};
};

std::string editor() {
  for (const char* name : {"SKIFF_EDITOR", "KUBE_EDITOR", "VISUAL", "EDITOR"}) {
    if (const char* value = std::getenv(name); value != nullptr && *value != 0) return value;
  }
  return "vi";
}

// A file of our own that stays where it is until we remove it.
Result<std::string> new_file(const std::string& text) {
  std::string path = (std::filesystem::temp_directory_path() / "skiff-edit-XXXXXX.yaml").string();
  const int fd = mkstemps(path.data(), 5);
  if (fd < 0) return fail(Code::kInternal, fmt::format("cannot make a file in {}", path));
  close(fd);
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

Result<std::string> open_editor(const std::string& path) {
  // The variable may hold options ("code --wait"), so a shell takes it apart; the path is no code.
  setenv("SKIFF_EDIT_FILE", path.c_str(), 1);
  const int status = std::system(fmt::format("{} \"$SKIFF_EDIT_FILE\"", editor()).c_str());
  if (status != 0) {
    return fail(Code::kInternal, fmt::format("the editor ({}) failed; choose another with "
                                             "SKIFF_EDITOR or EDITOR",
                                             editor()));
  }
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), {});
  if (!file) return fail(Code::kInternal, fmt::format("cannot read {} any more", path));
  return text;
}

class Edit {
 public:
  Edit(Context& context, Connection& server, const Selected& what, const EditOptions& options)
      : context_(context), server_(server), what_(what), options_(options) {}

  Result<void> run() {
    SKIFF_TRY(load());
    std::string text = edit_buffer(shown_, {});
    SKIFF_ASSIGN(const std::string path, new_file(text));
    std::string problem;
    while (true) {
      const auto typed = open_editor(path);
      if (!typed) return kept(path, typed.error());
      const bool given_up = *typed == text;
      text = *typed;
      if (given_up && !problem.empty()) return kept(path, {.message = problem});
      const auto sent = given_up ? Result<bool>(false) : send(text);
      if (sent) {
        std::filesystem::remove(path);
        if (!*sent) fmt::print(stderr, "Edit cancelled, no changes made.\n");
        return {};
      }
      problem = sent.error().message;
      text = next_text(sent.error(), text);
      std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
    }
  }

 private:
  Result<void> load() {
    SKIFF_ASSIGN(shown_, server_.client().get(what_.kind.resource, what_.ns, what_.name));
    version_ = api::resource_version(shown_);
    // Nobody edits these; they only hide what is worth reading.
    json::make_object(shown_, {"metadata"}).erase("managedFields");
    return {};
  }

  // False: the object is to stay as it is.
  Result<bool> send(std::string_view text) {
    SKIFF_ASSIGN(const json::value typed, read_edit(text));
    if (typed.is_null()) return false;
    patch_ = merge_diff(shown_.as_object(), typed.as_object());
    if (patch_.empty()) return false;
    client::Write write{.verb = client::Verb::kMergePatch,
                        .resource = what_.kind.resource,
                        .ns = what_.ns,
                        .name = what_.name,
                        .subresource = options_.subresource,
                        .body = patch_,
                        .resource_version = version_};
    SKIFF_ASSIGN(const json::value done, server_.client().write(write));
    SKIFF_TRY(print_done(context_, server_, what_, done, "edited"));
    return true;
  }

  // What to show after a try that failed: what was typed, on top of what the object is by now.
  std::string next_text(const Error& error, const std::string& text) {
    if (error.code != Code::kConflict || !load()) return with_problem(text, error.message);
    json::value merged = shown_;
    merge_into(merged, patch_);
    if (json::find(merged, {"metadata", "resourceVersion"}) != nullptr) {
      json::set(merged, {"metadata", "resourceVersion"}, json::string(version_));
    }
    return edit_buffer(merged,
                       "somebody else has changed the object since; below is what it is now with "
                       "your changes on top. Save (with any change) to send it.");
  }

  std::unexpected<Error> kept(const std::string& path, Error why) const {
    why.message = fmt::format("{}\nWhat you typed is kept in {}; use it with: skiff apply -f {}",
                              why.message, path, path);
    return std::unexpected(std::move(why));
  }

  Context& context_;
  Connection& server_;
  const Selected what_;
  const EditOptions& options_;
  json::value shown_;
  std::string version_;
  json::object patch_;
};

Result<void> run_edit(Context& context, const EditOptions& options) {
  SKIFF_ASSIGN(Connection * server, context.connect());
  SKIFF_ASSIGN(const std::vector<Selected> all, select(context, *server, options.selection));
  for (const Selected& one : all) SKIFF_TRY(Edit(context, *server, one, options).run());
  return {};
}

}  // namespace

void add_edit(CLI::App& app, Context& context, int& exit_code) {
  auto options = std::make_shared<EditOptions>();
  CLI::App* verb = app.add_subcommand("edit", "Change an object in an editor");
  add_selection(*verb, context, options->selection, "KIND NAME... or KIND/NAME...");
  verb->add_option("--subresource", options->subresource, "status or scale");
  add_output(*verb, context, "json, yaml or name: what the server holds then");
  verb->footer(R"help(
The editor is $SKIFF_EDITOR, $KUBE_EDITOR, $VISUAL, $EDITOR or vi. What the server refuses is shown
again with the reason; leave it unchanged to give up, and a copy stays.
Examples:
  skiff edit tfjob/mnist
  SKIFF_EDITOR="code --wait" skiff edit configmap settings -n team
)help");
  verb->callback([options, &context, &exit_code] {
    if (auto done = run_edit(context, *options); !done) exit_code = report(done.error());
  });
}

}  // namespace skiff::cli
