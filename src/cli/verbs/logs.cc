// skiff logs: what pods print; of a job, what its first replica or (--all) every replica prints.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "api/meta.h"
#include "cli/follow.h"
#include "cli/verbs/verbs.h"

namespace skiff::cli {
namespace {

struct Options {
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
                                    const Options& options) {
  const std::size_t slash = options.target.find('/');
  const std::string word = slash == std::string::npos ? "pods" : options.target.substr(0, slash);
  const std::string name =
      slash == std::string::npos ? options.target : options.target.substr(slash + 1);
  SKIFF_ASSIGN(const api::Kind kind, server.kind(word));
  auto object = server.client().get(kind.resource, ns, name);
  if (object && kind.resource.kind == "Pod") {
    return std::vector<Object>{std::make_shared<const json::value>(std::move(*object))};
  }
  if (!object && (slash != std::string::npos || object.error().code != Code::kNotFound)) {
    return std::unexpected(object.error());
  }
  // A bare name that is no pod may be a job's.
  SKIFF_ASSIGN(std::vector<Object> pods, pods_of_job(server, ns, name));
  if (pods.empty() && !object) return std::unexpected(object.error());
  if (pods.empty()) {
    return fail(Code::kNotFound,
                fmt::format("{} has no pods; ask: skiff why {}", options.target, options.target));
  }
  if (!options.all) return std::vector<Object>{main_pod(pods)};
  return pods;
}

Result<void> run_logs(Context& context, Options options) {
  SKIFF_ASSIGN(Connection * server, context.connect());
  SKIFF_ASSIGN(const std::vector<Object> pods, pods_of(*server, context.ns(), options));
  if (options.all) {
    options.follow.colour = context.globals.colour;
    Follower follower(*server, options.follow);
    follower.add(pods);
    follower.join();
    return {};
  }
  const json::value& pod = *pods.front();
  return server->lines(
      {.target = log_target(api::ns(pod), api::name(pod), options.follow, options.previous)},
      [](std::string_view line) {
        fmt::print("{}\n", line);
        return std::fflush(stdout) == 0;
      });
}

}  // namespace

void add_logs(CLI::App& app, Context& context, int& exit_code) {
  auto options = std::make_shared<Options>();
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
