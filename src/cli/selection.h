// Which objects a command means: by name, by file, by label, or all of a kind.
#pragma once

#include <string>
#include <vector>

#include "cli/context.h"

namespace CLI {
class App;
}

namespace skiff::cli {

struct Selection {
  std::vector<std::string> words = {};  // KIND NAME... or KIND/NAME...
  std::vector<std::string> files = {};
  bool all = false;
};

struct Selected {
  api::Kind kind = {};
  std::string ns = {};
  std::string name = {};

  std::string shown() const { return kind.singular + "/" + name; }
};

// Adds the words (`about` says what they are), -f, -l, --field-selector, -A and --all.
void add_selection(CLI::App& verb, Context& context, Selection& selection, const char* about);
// Adds -o; `forms` for the help.
void add_output(CLI::App& verb, Context& context, const char* forms);

// A kind without names needs a selector or --all, unless `whole_kinds`.
Result<std::vector<Selected>> select(Context& context, Connection& server,
                                     const Selection& selection, bool whole_kinds = false);

// One line of what was done, or the object as -o asks.
Result<void> print_done(Context& context, Connection& server, const Selected& what,
                        const json::value& object, std::string_view done);
// As -o asks; not for tables.
Result<void> print_objects(Context& context, Connection& server, json::array objects, bool list);

}  // namespace skiff::cli
