// skiff logs: what pods print; of a job, what its first replica or (--all) every replica prints.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include "api/meta.h"
#include "cli/follow.h"
#include "cli/verbs/verbs.h"

namespace skiff::cli {
namespace {

constexpr auto kLogsPoll = std::chrono::milliseconds(100);
constexpr int kTriesBeforeHint = 30;
constexpr int kTriesForPods = 100;

struct LogsOptions {
  std::string target = {};
  FollowOptions follow = {.follow = false};
  bool all = false;
  bool previous = false;
};

// The replica a person means by "the job's log": its chief, master, else its first worker.
Object main_pod(const std::vector<Object>& pods) {
  for (const Object& pod : pods) {
    if (api::label(*pod, "training.kubeflow.org/job-role") == "master") return pod;
  }
  return pods.empty() ? nullptr : pods.front();
}

Result<std::vector<Object>> pods_of(Connection& server, const std::string& ns,
                                    const LogsOptions& options) {
  const std::size_t slash = options.target.find('/');
  const bool bare = slash == std::string::npos;
  const std::string word = bare ? "pods" : options.target.substr(0, slash);
  const std::string name = bare ? options.target : options.target.substr(slash + 1);
  SKIFF_ASSIGN(const api::Kind kind, server.kind(word));
  auto object = server.client().get(kind.resource, ns, name);
  if (object && kind.resource.kind == "Pod") {
    return std::vector<Object>{std::make_shared<const json::value>(std::move(*object))};
  }
  if (!object && (!bare || object.error().code != Code::kNotFound)) {
    return std::unexpected(object.error());
  }
  // A bare name that is no pod may be a job's.
  SKIFF_ASSIGN(std::vector<Object> pods,
               pods_of_job(server, ns, name, bare ? "" : kind.resource.kind));
  if (pods.empty() && !object) return std::unexpected(object.error());
  if (!pods.empty() && !options.all) return std::vector<Object>{main_pod(pods)};
  return pods;
}

// Not even its first container has begun. One that is gone will not begin.
bool starting(Connection& server, const json::value& pod) {
  static const api::Resource kPods{.version = "v1", .plural = "pods", .kind = "Pod"};
  const auto now =
      server.client().get(kPods, std::string(api::ns(pod)), std::string(api::name(pod)));
  return now && api::uid(*now) == api::uid(pod) &&
         json::get_string(*now, {"status", "phase"}, "Pending") == "Pending";
}

Result<void> print_pod(Connection& server, const json::value& pod, const LogsOptions& options) {
  const std::string target =
      log_target(api::ns(pod), api::name(pod), options.follow, options.previous);
  bool said = false;
  bool last = false;
  for (int tries = 0;; ++tries) {
    Result<void> done = server.lines({.target = target}, [&said](std::string_view line) {
      said = true;
      fmt::print("{}\n", line);
      return std::fflush(stdout) == 0;
    });
    // Who follows a pod that was made a moment ago waits for it, as those of --all do. While it has
    // no node the answer is empty, then it is an error until its container starts.
    if (said || last || !options.follow.follow || options.previous) return done;
    last = !starting(server, pod);
    if (tries == kTriesBeforeHint) {
      fmt::print(stderr, "{} has not started yet; to know why: skiff why {}\n", api::name(pod),
                 options.target);
    }
    std::this_thread::sleep_for(kLogsPoll);
  }
}

Result<void> run_logs(Context& context, LogsOptions options) {
  SKIFF_ASSIGN(Connection * server, context.connect());
  SKIFF_ASSIGN(std::vector<Object> pods, pods_of(*server, context.ns(), options));
  // A job that was made a moment ago gets its pods in the next.
  for (int tries = 0; pods.empty() && options.follow.follow && tries < kTriesForPods; ++tries) {
    std::this_thread::sleep_for(kLogsPoll);
    SKIFF_ASSIGN(pods, pods_of(*server, context.ns(), options));
  }
  if (pods.empty()) {
    return fail(Code::kNotFound,
                fmt::format("{} has no pods; ask: skiff why {}", options.target, options.target));
  }
  if (options.all) {
    options.follow.colour = context.globals.colour;
    Follower follower(*server, options.follow);
    follower.add(pods);
    follower.join();
    return {};
  }
  return print_pod(*server, *pods.front(), options);
}

}  // namespace

void add_logs(CLI::App& app, Context& context, int& exit_code) {
  auto options = std::make_shared<LogsOptions>();
  CLI::App* verb = app.add_subcommand("logs", "Print what a pod or a job's replicas print");
  verb->add_option("target", options->target, "POD or KIND/NAME")->required();
  verb->add_flag("-f,--follow", options->follow.follow, "Go on as it comes");
  verb->add_flag("--all", options->all, "Every replica of the job");
  verb->add_flag("-p,--previous", options->previous, "The run before the last restart");
  verb->add_option("-c,--container", options->follow.container, "Container");
  verb->add_option("--tail", options->follow.tail_lines, "Only the last lines");
  verb->add_flag("--timestamps", options->follow.timestamps, "With the time of each line");
  verb->callback([options, &context, &exit_code] {
    if (auto done = run_logs(context, *options); !done) exit_code = report(done.error());
  });
}

}  // namespace skiff::cli
