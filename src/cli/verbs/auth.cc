// skiff auth can-i and skiff auth whoami: what may I do, and who am I to the server.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/access_review.h"
#include "cli/output.h"
#include "cli/verbs/verbs.h"

namespace skiff::cli {
namespace {

struct AuthOptions {
  std::string verb = {};
  std::string target = {};
  std::string subresource = {};
  bool list = false;
  bool quiet = false;
};

Result<json::value> ask(Connection& server, const std::string& target, const json::value& body) {
  SKIFF_ASSIGN(const http::Response answer,
               server.send({.method = "POST",
                            .target = target,
                            .headers = {{"Content-Type", "application/json"}},
                            .body = json::serialize(body)}));
  return json::parse(answer.body);
}

bool print_as_asked(const Context& context, const json::value& review) {
  const auto format = parse_format(context.globals.output);
  if (!format || format->table()) return false;
  const auto text = render(*format, {review}, false, [](const json::value&) { return ""; });
  if (text) fmt::print("{}", *text);
  return true;
}

Result<void> list_rules(Context& context, Connection& server) {
  SKIFF_ASSIGN(const json::value review,
               ask(server, "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
                   rules_review(context.ns())));
  if (!print_as_asked(context, review)) fmt::print("{}", rules_text(review));
  return {};
}

// The exit code: 0 yes, 1 no.
Result<int> can_i(Context& context, const AuthOptions& options) {
  SKIFF_ASSIGN(Connection * server, context.connect());
  if (options.list) {
    SKIFF_TRY(list_rules(context, *server));
    return 0;
  }
  if (options.verb.empty() || options.target.empty()) {
    return fail(Code::kBadRequest, "write: skiff auth can-i VERB RESOURCE[/NAME], or --list");
  }
  std::optional<api::Kind> kind;
  if (const std::string word = kind_word(options.target); !word.empty() && word != "*") {
    if (auto found = server->kind(word)) kind = std::move(*found);
    if (!kind) fmt::print(stderr, "Warning: the server doesn't have a resource type '{}'\n", word);
  }
  const std::string ns = context.globals.all_namespaces ? "" : context.ns();
  const Question q = question(options.verb, options.target, kind, options.subresource, ns);
  SKIFF_ASSIGN(
      const json::value review,
      ask(*server, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", access_review(q)));
  const Verdict verdict = verdict_of(review);
  if (!options.quiet && !print_as_asked(context, review)) {
    fmt::print("{}{}{}\n", verdict.allowed ? "yes" : "no",
               verdict.allowed || verdict.reason.empty() ? "" : " - ",
               verdict.allowed ? "" : verdict.reason);
  }
  return verdict.allowed ? 0 : 1;
}

Result<void> whoami(Context& context) {
  SKIFF_ASSIGN(Connection * server, context.connect());
  SKIFF_ASSIGN(
      const json::value review,
      ask(*server, "/apis/authentication.k8s.io/v1/selfsubjectreviews",
          json::object{{"apiVersion", "authentication.k8s.io/v1"}, {"kind", "SelfSubjectReview"}}));
  if (!print_as_asked(context, review)) fmt::print("{}", whoami_text(review));
  return {};
}

}  // namespace

void add_auth(CLI::App& app, Context& context, int& exit_code) {
  CLI::App* auth = app.add_subcommand("auth", "What may I do, and who am I");
  auth->require_subcommand(1);
  auto options = std::make_shared<AuthOptions>();
  CLI::App* can = auth->add_subcommand("can-i", "Ask whether a request would be allowed");
  can->add_option("verb", options->verb,
                  "get, list, watch, create, update, patch, delete, ... or *");
  can->add_option("target", options->target, "RESOURCE, RESOURCE/NAME or /path");
  can->add_option("--subresource", options->subresource, "log, status, ...");
  can->add_flag("--list", options->list, "Everything that is allowed in the namespace");
  can->add_flag("-q,--quiet", options->quiet, "Only the exit code");
  can->add_flag("-A,--all-namespaces", context.globals.all_namespaces, "In every namespace");
  can->footer(R"help(
The exit code is 0 for yes and 1 for no.
Examples:
  skiff auth can-i create tfjobs -n team
  skiff auth can-i get pods --subresource log --as jane
  skiff auth can-i get /metrics
  skiff auth can-i --list --as system:serviceaccount:team:builder
)help");
  can->callback([options, &context, &exit_code] {
    const auto code = can_i(context, *options);
    exit_code = code ? *code : report(code.error());
  });
  CLI::App* who = auth->add_subcommand("whoami", "Who the server takes us for");
  who->callback([&context, &exit_code] {
    if (auto done = whoami(context); !done) exit_code = report(done.error());
  });
}

}  // namespace skiff::cli
