// skiff explain: which fields a kind has, from the server's own schema.
#include "cli/explain.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/strings.h"
#include "cli/printer.h"
#include "cli/verbs/verbs.h"

namespace skiff::cli {
namespace {

struct ExplainOptions {
  std::string target = {};
  bool recursive = false;
  std::string api_version = {};
};

// tfjobs.spec, or tfjobs.kubeflow.org.spec: the longest start that names a kind is the kind.
Result<api::Kind> split_target(Connection& server, const ExplainOptions& options,
                               std::vector<std::string>& fields) {
  std::vector<std::string> parts;
  for (const std::string_view part : split(options.target, '.')) {
    if (!part.empty()) parts.emplace_back(part);
  }
  SKIFF_ASSIGN(std::vector<api::Kind> kinds, server.kinds());
  if (!options.api_version.empty()) {
    std::erase_if(kinds, [&](const api::Kind& kind) {
      return kind.resource.api_version() != options.api_version;
    });
  }
  for (std::size_t used = parts.size(); used > 0; --used) {
    const std::vector<std::string> word(parts.begin(), parts.begin() + static_cast<long>(used));
    auto kind = find_kind(kinds, join(word, "."));
    if (!kind && used > 1) continue;
    if (!kind) return kind;
    fields.assign(parts.begin() + static_cast<long>(used), parts.end());
    return kind;
  }
  return fail(Code::kBadRequest, "name a kind: skiff explain tfjobs.spec");
}

Result<void> run_explain(Context& context, const ExplainOptions& options) {
  SKIFF_ASSIGN(Connection * server, context.connect());
  std::vector<std::string> fields;
  SKIFF_ASSIGN(const api::Kind kind, split_target(*server, options, fields));
  SKIFF_ASSIGN(const http::Response answer, server->send({.target = "/openapi/v3"}));
  SKIFF_ASSIGN(const json::value index, json::parse(answer.body));
  const std::string target = document_target(index, kind.resource);
  if (target.empty()) {
    return fail(Code::kNotFound,
                fmt::format("the server has no schema for {}", kind.resource.api_version()));
  }
  SKIFF_ASSIGN(const http::Response text, server->send({.target = target}));
  SKIFF_ASSIGN(const json::value document, json::parse(text.body));
  SKIFF_ASSIGN(const std::string out,
               explain_text(document, kind.resource, fields, options.recursive));
  if (context.globals.output == "json") {
    fmt::print("{}\n", json::pretty(json::object{{"group", kind.resource.group},
                                                 {"version", kind.resource.version},
                                                 {"kind", kind.resource.kind},
                                                 {"text", out}}));
    return {};
  }
  fmt::print("{}", printable(out));
  return {};
}

}  // namespace

void add_explain(CLI::App& app, Context& context, int& exit_code) {
  auto options = std::make_shared<ExplainOptions>();
  CLI::App* verb = app.add_subcommand("explain", "Say which fields a kind has");
  verb->add_option("target", options->target, "KIND[.FIELD...]")->required();
  verb->add_flag("--recursive", options->recursive, "All fields of all fields, names only");
  verb->add_option("--api-version", options->api_version, "GROUP/VERSION where there are several");
  verb->footer(R"help(
Examples:
  skiff explain pods                             every field, with what it is for
  skiff explain tfjobs.spec.runPolicy
  skiff explain pod.spec.containers.resources
  skiff explain pytorchjobs --recursive          the whole tree
)help");
  verb->callback([options, &context, &exit_code] {
    if (auto done = run_explain(context, *options); !done) exit_code = report(done.error());
  });
}

}  // namespace skiff::cli
