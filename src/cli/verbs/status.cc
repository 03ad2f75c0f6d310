// skiff status: is it running, where, and what is in it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>

#include "api/meta.h"
#include "cli/printer.h"
#include "cli/verbs/verbs.h"

namespace skiff::cli {
namespace {

struct Count {
  std::string kind;
  std::map<std::string, int> states;
  int total = 0;
};

// A pod's phase; a job's newest condition.
std::string state_word(const json::value& object) {
  if (const auto phase = json::get_string(object, {"status", "phase"}); !phase.empty()) {
    return std::string(phase);
  }
  const json::array& conditions = json::get_array(object, {"status", "conditions"});
  return conditions.empty() ? "New" : std::string(json::get_string(conditions.back(), {"type"}));
}

Result<std::vector<Count>> count(Connection& server) {
  std::vector<Count> out;
  for (const char* word : {"tfjobs", "pytorchjobs", "pods"}) {
    SKIFF_ASSIGN(const api::Kind kind, server.kind(word));
    SKIFF_ASSIGN(const client::List list, server.client().list(kind.resource, "", {}));
    Count row{.kind = kind.resource.kind};
    for (const Object& object : list.items) ++row.states[state_word(*object)];
    row.total = static_cast<int>(list.items.size());
    out.push_back(std::move(row));
  }
  return out;
}

Result<void> run_status(Context& context) {
  SKIFF_ASSIGN(Connection * server, context.connect());
  SKIFF_ASSIGN(const http::Response answer, server->send({.target = "/skiff/v1/status"}));
  SKIFF_ASSIGN(const json::value status, json::parse(answer.body));
  SKIFF_ASSIGN(const std::vector<Count> counts, count(*server));
  if (context.globals.output == "json") {
    json::value out = status;
    for (const Count& row : counts) {
      json::object& states = json::make_object(out, {"objects", row.kind});
      for (const auto& [state, n] : row.states) states[state] = n;
    }
    fmt::print("{}\n", json::pretty(out));
    return {};
  }
  for (const auto& [key, value] : status.as_object()) {
    fmt::print(
        "{:<10} {}\n", std::string_view(key),
        value.is_string() ? std::string(json::view(value.get_string())) : json::serialize(value));
  }
  std::vector<std::vector<std::string>> rows = {{"KIND", "COUNT", "STATES"}};
  for (const Count& row : counts) {
    std::string states;
    for (const auto& [state, n] : row.states) {
      states += fmt::format("{}{} {}", states.empty() ? "" : ", ", n, state);
    }
    rows.push_back({row.kind, std::to_string(row.total), states});
  }
  fmt::print("\n{}", columns(rows));
  return {};
}

}  // namespace

void add_status(CLI::App& app, Context& context, int& exit_code) {
  CLI::App* verb = app.add_subcommand("status", "Is Skiff running, where, and what is in it");
  verb->add_option("-o,--output", context.globals.output, "json")->check(CLI::IsMember({"json"}));
  verb->callback([&context, &exit_code] {
    if (auto done = run_status(context); !done) exit_code = report(done.error());
  });
}

}  // namespace skiff::cli
