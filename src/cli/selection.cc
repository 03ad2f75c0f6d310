#include "cli/selection.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "api/meta.h"
#include "cli/manifests.h"
#include "cli/output.h"

namespace skiff::cli {
namespace {

Result<void> select_files(Context& context, Connection& server, const Selection& selection,
                          std::vector<Selected>& out) {
  for (const std::string& file : selection.files) {
    SKIFF_ASSIGN(const std::vector<json::value> objects, read_manifests(file));
    for (const json::value& object : objects) {
      SKIFF_ASSIGN(api::Kind kind, server.kind_of(object));
      std::string ns(api::ns(object));
      if (ns.empty() && kind.resource.namespaced) ns = context.ns();
      out.push_back({std::move(kind), std::move(ns), std::string(api::name(object))});
    }
  }
  return {};
}

}  // namespace

void add_output(CLI::App& verb, Context& context, const char* forms) {
  verb.add_option("-o,--output", context.globals.output, forms)->check([](const std::string& text) {
    const auto format = parse_format(text);
    return format ? std::string() : format.error().message;
  });
}

void add_selection(CLI::App& verb, Context& context, Selection& selection, const char* about) {
  verb.add_option("target", selection.words, about);
  verb.add_option("-f,--filename", selection.files, "The objects that these files describe");
  verb.add_option("-l,--selector", context.globals.selector, "Label selector: a=b,c!=d,e in (f,g)");
  verb.add_option("--field-selector", context.globals.field_selector,
                  "Field selector: status.phase=Running");
  verb.add_flag("-A,--all-namespaces", context.globals.all_namespaces, "All namespaces");
  verb.add_flag("--all", selection.all, "Every object of the kind");
}

Result<std::vector<Selected>> select(Context& context, Connection& server,
                                     const Selection& selection, bool whole_kinds) {
  std::vector<Selected> out;
  SKIFF_TRY(select_files(context, server, selection, out));
  if (selection.words.empty() && !selection.files.empty()) return out;
  SKIFF_ASSIGN(const std::vector<Target> targets, parse_targets(selection.words));
  const Globals& globals = context.globals;
  for (const Target& target : targets) {
    SKIFF_ASSIGN(const api::Kind kind, server.kind(target.kind));
    const bool every = !kind.resource.namespaced || globals.all_namespaces;
    const std::string ns = every ? "" : context.ns();
    if (!target.name.empty()) {
      if (globals.all_namespaces && kind.resource.namespaced) {
        return fail(Code::kBadRequest,
                    "a resource cannot be retrieved by name across all namespaces; leave out -A");
      }
      out.push_back({kind, ns, target.name});
      continue;
    }
    const bool narrowed = !globals.selector.empty() || !globals.field_selector.empty();
    if (!whole_kinds && !selection.all && !narrowed) {
      return fail(Code::kBadRequest, "say which: names, -l SELECTOR or --all");
    }
    SKIFF_ASSIGN(const client::List list,
                 server.client().list(kind.resource, ns,
                                      {.label_selector = globals.selector,
                                       .field_selector = globals.field_selector}));
    for (const Object& object : list.items) {
      out.push_back({kind, std::string(api::ns(*object)), std::string(api::name(*object))});
    }
  }
  return out;
}

Result<void> print_objects(Context& context, Connection& server, json::array objects, bool list) {
  SKIFF_ASSIGN(const Format format, parse_format(context.globals.output));
  // Who owns which field is for programs; kubectl does not show it either.
  for (json::value& object : objects)
    json::make_object(object, {"metadata"}).erase("managedFields");
  SKIFF_ASSIGN(const std::string text,
               render(format, std::move(objects), list, [&](const json::value& object) {
                 const auto kind = server.kind_of(object);
                 const std::string group = kind ? kind->resource.group : "";
                 return fmt::format("{}{}{}/{}", kind ? kind->singular : "unknown",
                                    group.empty() ? "" : ".", group, api::name(object));
               }));
  fmt::print("{}", text);
  return {};
}

Result<void> print_done(Context& context, Connection& server, const Selected& what,
                        const json::value& object, std::string_view done) {
  SKIFF_ASSIGN(const Format format, parse_format(context.globals.output));
  if (!format.table()) return print_objects(context, server, {object}, false);
  fmt::print("{} {}\n", what.shown(), done);
  return {};
}

}  // namespace skiff::cli
