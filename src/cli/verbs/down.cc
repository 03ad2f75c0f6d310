// skiff down: stops a running Skiff and its pods.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <thread>

#include "cli/daemon.h"
#include "cli/verbs/verbs.h"

namespace skiff::cli {
namespace {

using namespace std::chrono_literals;

struct DownOptions {
  bool keep_pods = false;
  bool purge = false;
};

void say_status(const Context& context, std::string_view status, const std::string& sentence) {
  if (context.globals.output == "json") {
    fmt::print("{}\n", json::pretty(json::object{{"status", status}}));
  } else {
    fmt::print("{}\n", sentence);
  }
}

Result<void> ask_to_stop(Context& context, bool keep_pods) {
  SKIFF_ASSIGN(Connection * server, context.connect());
  SKIFF_TRY(server->send(
      {.method = "POST", .target = keep_pods ? "/skiff/v1/stop?keepPods=true" : "/skiff/v1/stop"}));
  return {};
}

// Waits until the lock is free. Pods have their grace, and a little more is for the rest.
bool wait_for_end(const std::string& data, int pid, std::chrono::seconds grace) {
  const auto end = std::chrono::steady_clock::now() + grace + 30s;
  while (running_pid(data) == pid && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(20ms);
  }
  return running_pid(data) != pid;
}

// The longest grace of any pod: down must not give up before it is over.
std::chrono::seconds longest_grace(Connection& server) {
  static const api::Resource kPods{.version = "v1", .plural = "pods", .kind = "Pod"};
  std::int64_t seconds = 30;
  if (const auto pods = server.client().list(kPods, "", {})) {
    for (const Object& pod : pods->items) {
      const auto grace = json::get_int(*pod, {"spec", "terminationGracePeriodSeconds"});
      seconds = std::max(seconds, grace.value_or(30));
    }
  }
  return std::chrono::seconds(seconds);
}

Result<void> stop_running(Context& context, const Hooks& hooks, const DownOptions& options,
                          int pid) {
  const std::string& data = context.globals.data;
  std::chrono::seconds grace = 30s;
  if (const auto server = context.connect()) grace = longest_grace(**server);
  const auto asked = ask_to_stop(context, options.keep_pods);
  // One that does not answer stops by the signal as well, but leaves its pods to us.
  if (!asked) kill(pid, SIGTERM);
  if (!wait_for_end(data, pid, grace)) {
    return fail(Code::kTimeout,
                fmt::format("Skiff (pid {}) does not stop; look at {}/skiff.log", pid, data));
  }
  if (!asked && !options.keep_pods) SKIFF_TRY(hooks.clean_up(data));
  say_status(context, "stopped",
             fmt::format("Skiff stopped{}", options.keep_pods ? "; its pods go on" : ""));
  return {};
}

Result<void> purge(const std::string& data, const Hooks& hooks) {
  std::error_code error;
  if (access(data.c_str(), F_OK) != 0) return {};
  if (access((data + "/lock").c_str(), F_OK) != 0) {
    return fail(Code::kConflict,
                fmt::format("{} is no data folder of Skiff's; nothing was removed", data));
  }
  std::filesystem::remove_all(data, error);
  // Images bring owners who are nobody to an ordinary user.
  if (error && geteuid() != 0 && hooks.purge && hooks.purge(data)) error.clear();
  if (error) {
    return fail(Code::kInternal, fmt::format("cannot remove {}: {}", data, error.message()));
  }
  fmt::print("removed {}\n", data);
  return {};
}

Result<void> run_down(Context& context, const Hooks& hooks, const DownOptions& options) {
  const std::string& data = context.globals.data;
  const int pid = running_pid(data);
  if (pid > 0) {
    SKIFF_TRY(stop_running(context, hooks, options, pid));
  } else {
    say_status(context, "not running", fmt::format("Skiff is not running at {}", data));
    // It may have been killed: its pods are still there.
    if (!options.keep_pods && access((data + "/lock").c_str(), F_OK) == 0) {
      SKIFF_TRY(hooks.clean_up(data));
    }
  }
  return options.purge ? purge(data, hooks) : Result<void>();
}

}  // namespace

void add_down(CLI::App& app, Context& context, const Hooks& hooks, int& exit_code) {
  auto options = std::make_shared<DownOptions>();
  CLI::App* verb = app.add_subcommand("down", "Stop Skiff and its pods");
  verb->add_flag("--keep-pods", options->keep_pods, "Leave pods running for the next up");
  verb->add_flag("--purge", options->purge, "Remove the data folder, too: nothing is left");
  verb->callback([options, &context, &hooks, &exit_code] {
    if (options->purge && options->keep_pods) {
      exit_code = report({.message = "--purge and --keep-pods contradict each other"});
      return;
    }
    if (auto done = run_down(context, hooks, *options); !done) exit_code = report(done.error());
  });
}

}  // namespace skiff::cli
