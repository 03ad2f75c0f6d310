// skiff wait: returns when objects are as they should be.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include "api/meta.h"
#include "cli/selection.h"
#include "cli/verbs/verbs.h"
#include "cli/wait_for.h"

namespace skiff::cli {
namespace {

using namespace std::chrono_literals;

// A watch that says nothing for so long is asked anew, in case the server is gone.
constexpr std::chrono::milliseconds kOneWatch = 30s;
constexpr std::chrono::milliseconds kWaitPause = 100ms;

struct WaitOptions {
  Selection selection = {};
  std::string wait_for = {};
  std::string timeout = "30s";
};

class Waiter {
 public:
  Waiter(Connection& server, const WaitFor& wait_for, std::chrono::steady_clock::time_point end)
      : server_(server), wait_for_(wait_for), end_(end) {}

  // The object as it was when it was met (null: gone), or why it was not.
  Result<json::value> wait(const Selected& what) {
    while (true) {
      auto now = server_.client().get(what.kind.resource, what.ns, what.name);
      const bool missing = !now && now.error().code == Code::kNotFound;
      if (missing && wait_for_.needs_object()) return now;
      // A server that restarts comes back.
      const bool away = !now && now.error().code == Code::kServiceUnavailable;
      if (!now && !missing && !away) return now;
      if (!away && wait_for_.met(missing ? nullptr : &*now)) {
        return missing ? json::value() : std::move(*now);
      }
      if (left() <= 0ms) {
        return fail(Code::kTimeout, fmt::format("timed out waiting for the condition on {}/{}",
                                                what.kind.resource.plural, what.name));
      }
      if (away || missing || !follow(what, *now)) {
        std::this_thread::sleep_for(std::min(kWaitPause, left()));
      }
    }
  }

 private:
  std::chrono::milliseconds left() const {
    return std::chrono::ceil<std::chrono::milliseconds>(end_ - std::chrono::steady_clock::now());
  }

  // Returns at the first event after which it may be met. False: the server would not say.
  bool follow(const Selected& what, const json::value& now) {
    const auto time = std::min(kOneWatch, left());
    const std::string target = fmt::format(
        "{}?watch=1&fieldSelector={}&resourceVersion={}&timeoutSeconds={}",
        what.kind.resource.collection_path(what.ns), http::escape("metadata.name=" + what.name),
        api::resource_version(now),
        std::max<std::int64_t>(1, std::chrono::ceil<std::chrono::seconds>(time).count()));
    bool error = false;
    const auto done = server_.lines(
        {.target = target},
        [&](std::string_view line) {
          const auto event = json::parse(line);
          if (!event) return true;
          const std::string_view type = json::get_string(*event, {"type"});
          error = type == "ERROR";
          const json::value* object = json::find(*event, {"object"});
          const bool gone = type == "DELETED";
          return !error && !gone && type != "BOOKMARK" && object != nullptr &&
                 !wait_for_.met(object);
        },
        time);
    return done.has_value() && !error;
  }

  Connection& server_;
  const WaitFor& wait_for_;
  const std::chrono::steady_clock::time_point end_;
};

int run_wait(Context& context, const WaitOptions& options) {
  const auto wait_for = WaitFor::parse(options.wait_for);
  if (!wait_for) return report(wait_for.error());
  const auto time = parse_timeout(options.timeout);
  if (!time) return report(time.error());
  const auto server = context.connect();
  if (!server) return report(server.error());
  const auto all = select(context, **server, options.selection);
  if (!all) return report(all.error());
  if (all->empty() && !wait_for->for_delete()) {
    return report({.message = "no matching resources found"});
  }
  Waiter waiter(**server, *wait_for, std::chrono::steady_clock::now() + *time);
  int exit_code = 0;
  for (const Selected& one : *all) {
    const auto met = waiter.wait(one);
    if (!met) {
      exit_code = report(met.error());
      continue;
    }
    const auto printed = print_done(context, **server, one, *met, wait_for->done());
    if (!printed) exit_code = report(printed.error());
  }
  return exit_code;
}

}  // namespace

void add_wait(CLI::App& app, Context& context, int& exit_code) {
  auto options = std::make_shared<WaitOptions>();
  CLI::App* verb = app.add_subcommand("wait", "Wait until objects are as they should be");
  add_selection(*verb, context, options->selection, "KIND NAME... or KIND/NAME...");
  verb->add_option("--for", options->wait_for,
                   "condition=TYPE[=STATUS], jsonpath='{.path}'[=VALUE], create or delete")
      ->required();
  verb->add_option("--timeout", options->timeout, "30s, 5m; 0 looks once, below 0 waits a week")
      ->capture_default_str();
  add_output(*verb, context, "json, yaml or name: the objects");
  verb->footer(R"help(
Examples:
  skiff wait tfjob/mnist --for=condition=Succeeded --timeout=10m
  skiff wait pod web --for=condition=Ready
  skiff wait pods -l app=web --for=delete
  skiff wait pod/web --for=jsonpath='{.status.phase}'=Running
  skiff wait configmap/settings --for=create
)help");
  verb->callback([options, &context, &exit_code] { exit_code = run_wait(context, *options); });
}

}  // namespace skiff::cli
