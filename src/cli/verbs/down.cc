// skiff down: stops a running Skiff and its pods.
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>
#include <memory>
#include <thread>

#include "cli/verbs/verbs.h"

namespace skiff::cli {
namespace {

using namespace std::chrono_literals;

struct Options {
  bool keep_pods = false;
  bool purge = false;
};

// The running Skiff holds a lock on <data>/lock for its whole life, and its pid stands inside.
int holder(const std::string& data) {
  const int fd = open((data + "/lock").c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  int pid = 0;
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    char text[32] = {};
    if (read(fd, text, sizeof text - 1) > 0) pid = std::atoi(text);
  }
  close(fd);
  return pid;
}

Result<void> ask_to_stop(Context& context, bool keep_pods) {
  SKIFF_ASSIGN(Connection * server, context.connect());
  SKIFF_TRY(server->send(
      {.method = "POST", .target = keep_pods ? "/skiff/v1/stop?keepPods=true" : "/skiff/v1/stop"}));
  return {};
}

int run_down(Context& context, const Hooks& hooks, const Options& options) {
  const std::string& data = context.globals.data;
  const int pid = holder(data);
  if (pid > 0) {
    if (auto asked = ask_to_stop(context, options.keep_pods); !asked) {
      // It does not answer; the signal makes it stop as well, but leaves its pods running.
      kill(pid, SIGTERM);
    }
    // Pods have their grace (30 s by default) and a little more.
    const auto end = std::chrono::steady_clock::now() + 60s;
    while (holder(data) == pid && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(20ms);
    }
    if (holder(data) == pid) {
      return report({.message = fmt::format("Skiff (pid {}) does not stop; look at {}/skiff.log",
                                            pid, data)});
    }
    fmt::print("Skiff stopped{}\n", options.keep_pods ? "; its pods go on" : "");
  } else {
    fmt::print("Skiff is not running at {}\n", data);
    // It may have been killed: its pods are still there.
    if (!options.keep_pods && access(data.c_str(), F_OK) == 0) {
      if (auto done = hooks.clean_up(data); !done) return report(done.error());
    }
  }
  if (options.purge) {
    std::error_code error;
    std::filesystem::remove_all(data, error);
    if (error) {
      return report({.message = fmt::format("cannot remove {}: {}", data, error.message())});
    }
    fmt::print("removed {}\n", data);
  }
  return 0;
}

}  // namespace

void add_down(CLI::App& app, Context& context, const Hooks& hooks, int& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("down", "Stop Skiff and its pods");
  verb->add_flag("--keep-pods", options->keep_pods, "Leave pods running for the next up");
  verb->add_flag("--purge", options->purge, "Remove the data folder, too: nothing is left");
  verb->callback([options, &context, &hooks, &exit_code] {
    if (options->purge && options->keep_pods) {
      exit_code = report({.message = "--purge and --keep-pods contradict each other"});
      return;
    }
    exit_code = run_down(context, hooks, *options);
  });
}

}  // namespace skiff::cli
