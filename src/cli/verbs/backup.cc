// skiff backup and skiff restore: the whole state of a running Skiff in one file, and back.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <thread>

#include "cli/daemon.h"
#include "cli/verbs/verbs.h"

namespace skiff::cli {
namespace {

using namespace std::chrono_literals;

constexpr auto kStartTime = 90s;

struct BackupOptions {
  std::string file = {};
  bool force = false;
};

struct RestoreOptions {
  std::string file = {};
  bool yes = false;
};

// A file that only its owner reads, since it holds every secret.
class Output {
 public:
  explicit Output(std::string path) : path_(std::move(path)) {
    unlink(path_.c_str());
    fd_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  }
  ~Output() {
    if (fd_ >= 0) close(fd_);
    unlink(path_.c_str());  // gone already where it was moved to its place
  }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  Result<void> add(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t size = write(fd_, bytes.data(), bytes.size());
      if (size < 0) return fail(Code::kInternal, fmt::format("cannot write {}", path_));
      bytes.remove_prefix(static_cast<std::size_t>(size));
    }
    return {};
  }
  Result<void> finish() {
    if (fd_ >= 0 && fsync(fd_) == 0) return {};
    return fail(Code::kInternal, fmt::format("cannot write {}", path_));
  }

 private:
  const std::string path_;
  int fd_ = -1;
};

json::object summary_json(const BackupSummary& summary) {
  return {{"takenAt", summary.taken_at},
          {"takenBy", summary.taken_by},
          {"objects", summary.objects},
          {"revision", summary.revision}};
}

Result<void> run_backup(Context& context, const Hooks& hooks, const BackupOptions& options) {
  std::error_code error;
  if (!options.force && std::filesystem::exists(options.file, error)) {
    return fail(
        Code::kAlreadyExists,
        fmt::format("{} is there already; name another file, or add --force", options.file));
  }
  SKIFF_ASSIGN(Connection * server, context.connect());
  const std::string part = options.file + ".part";
  Output output(part);
  SKIFF_TRY(server->download({.target = "/skiff/v1/backup", .headers = {{"Accept", "*/*"}}},
                             [&](std::string_view piece) { return output.add(piece); }));
  SKIFF_TRY(output.finish());
  // A backup that cannot be read is worse than none.
  SKIFF_ASSIGN(const BackupSummary summary, hooks.inspect_backup(part));
  std::filesystem::rename(part, options.file, error);
  if (error) {
    return fail(Code::kInternal, fmt::format("cannot write {}: {}", options.file, error.message()));
  }
  if (context.globals.output == "json") {
    json::object out = summary_json(summary);
    out["file"] = options.file;
    fmt::print("{}\n", json::pretty(out));
  } else {
    fmt::print(
        "{} objects (revision {}) are in {}. It holds secrets and keys: keep it where only you can "
        "read it.\n",
        summary.objects, summary.revision, options.file);
  }
  return {};
}

Result<void> confirm(const BackupSummary& summary, const std::string& data, bool running) {
  fmt::print(
      stderr,
      "The state of the Skiff at {} will be replaced by the {} objects of the backup of {}.\n"
      "What is there now is kept beside it.{}\n",
      data, summary.objects, summary.taken_at,
      running ? " Skiff starts again; pods that are in the backup go on." : "");
  if (isatty(STDIN_FILENO) == 0) {
    return fail(Code::kBadRequest, "nobody is there to say yes; add --yes to restore");
  }
  fmt::print(stderr, "Go on? [y/N] ");
  std::string answer;
  std::getline(std::cin, answer);
  if (answer == "y" || answer == "Y" || answer == "yes") return {};
  return fail(Code::kBadRequest, "nothing was changed");
}

// Waits for the Skiff that has the backup, and tells where the state before is.
Result<std::string> wait_for_restored(Context& context, const std::string& taken_at) {
  const std::string& data = context.globals.data;
  const auto end = std::chrono::steady_clock::now() + kStartTime;
  while (std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(50ms);
    if (running_pid(data) == 0) {
      // Between two starts nobody holds the lock, either; but not for long.
      std::this_thread::sleep_for(2s);
      if (running_pid(data) == 0) break;
    }
    context.disconnect();  // its certificates and its port may be others now
    const auto server = context.connect();
    if (!server) continue;
    const auto answer = (*server)->send({.target = "/skiff/v1/status"});
    if (!answer) continue;
    const auto status = json::parse(answer->body);
    if (!status) continue;
    if (const auto why = json::get_string(*status, {"restore-refused"}); !why.empty()) {
      return fail(Code::kInvalid, fmt::format("nothing was restored: {}", why));
    }
    if (json::get_string(*status, {"restored"}) == taken_at) {
      return std::string(json::get_string(*status, {"before-restore"}));
    }
  }
  return fail(Code::kTimeout,
              fmt::format("Skiff did not come back with the backup; look at {}/skiff.log", data));
}

Result<std::string> restore_running(Context& context, const Hooks& hooks,
                                    const RestoreOptions& options) {
  SKIFF_ASSIGN(Connection * server, context.connect());
  // Asked first: one that does not answer would not take what we stage until who knows when.
  SKIFF_ASSIGN(const http::Response answer, server->send({.target = "/skiff/v1/status"}));
  SKIFF_ASSIGN(const json::value status, json::parse(answer.body));
  if (json::get_int(status, {"pid"}).value_or(0) != running_pid(context.globals.data)) {
    return fail(Code::kConflict,
                fmt::format("the Skiff that answers is not the one of {}; leave out --kubeconfig",
                            context.globals.data));
  }
  SKIFF_ASSIGN(const BackupSummary staged, hooks.stage_restore(options.file, context.globals.data));
  SKIFF_TRY(
      server->send({.method = "POST", .target = "/skiff/v1/stop?keepPods=true&startAgain=true"}));
  return wait_for_restored(context, staged.taken_at);
}

Result<void> run_restore(Context& context, const Hooks& hooks, const RestoreOptions& options) {
  const std::string& data = context.globals.data;
  SKIFF_ASSIGN(const BackupSummary summary, hooks.inspect_backup(options.file));
  const bool running = running_pid(data) > 0;
  if (!options.yes) SKIFF_TRY(confirm(summary, data, running));
  std::string kept;
  if (running) {
    SKIFF_ASSIGN(kept, restore_running(context, hooks, options));
  } else {
    SKIFF_ASSIGN(kept, hooks.restore(options.file, data));
  }
  if (context.globals.output == "json") {
    json::object out = summary_json(summary);
    out["before"] = kept;
    out["running"] = running;
    fmt::print("{}\n", json::pretty(out));
    return {};
  }
  fmt::print("restored {} objects of {}{}{}\n", summary.objects, summary.taken_at,
             kept.empty() ? "" : "; the state before is kept in ", kept);
  if (!running) fmt::print("start it with: skiff up -d --data {}\n", data);
  return {};
}

}  // namespace

void add_backup(CLI::App& app, Context& context, const Hooks& hooks, int& exit_code) {
  auto options = std::make_shared<BackupOptions>();
  CLI::App* verb = app.add_subcommand("backup", "Write the state of a running Skiff to one file");
  verb->add_option("file", options->file, "Where to")->required();
  verb->add_flag("--force", options->force, "Replace the file where it is there");
  verb->footer(R"help(
The copy is of one moment and nobody has to wait for it: every object, and the keys and certificates
of this Skiff. Logs, images and what pods have written are not in it.
Examples:
  skiff backup monday.skiff
  skiff backup /mnt/backups/$(date +%F).skiff
)help");
  verb->callback([options, &context, &hooks, &exit_code] {
    if (auto done = run_backup(context, hooks, *options); !done) exit_code = report(done.error());
  });
}

void add_restore(CLI::App& app, Context& context, const Hooks& hooks, int& exit_code) {
  auto options = std::make_shared<RestoreOptions>();
  CLI::App* verb = app.add_subcommand("restore", "Put the state of a backup back");
  verb->add_option("file", options->file, "What skiff backup wrote")->required();
  verb->add_flag("-y,--yes", options->yes, "Do not ask");
  verb->footer(R"help(
The backup is checked first, and the state before is kept in the data folder. A Skiff that runs
takes the backup by starting again, as it was started; one that does not is changed where it lies.
Clients that watch are told to list again.
Examples:
  skiff restore monday.skiff
  skiff restore monday.skiff --yes --data /srv/skiff      a stopped or new one
)help");
  verb->callback([options, &context, &hooks, &exit_code] {
    if (auto done = run_restore(context, hooks, *options); !done) exit_code = report(done.error());
  });
}

}  // namespace skiff::cli
