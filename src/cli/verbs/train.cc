// skiff train: one command from a script to a distributed job, its output here.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <memory>
#include <thread>

#include "api/meta.h"
#include "cli/follow.h"
#include "cli/printer.h"
#include "cli/train_manifest.h"
#include "cli/verbs/verbs.h"

namespace skiff::cli {
namespace {

using namespace std::chrono_literals;

struct Options {
  TrainOptions train;
  bool detach = false;
};

std::atomic<bool> g_interrupted =
    false;  // only a signal handler can tell us, and it has no argument

// skiff.dev/host must mean this machine before the first pod asks.
Result<void> map_host_image(Connection& server) {
  const json::value mapping = {{"apiVersion", "skiff.dev/v1"},
                               {"kind", "ImageMapping"},
                               {"metadata", {{"name", "skiff-host"}}},
                               {"spec", {{"pattern", json::string(kHostImage)}, {"host", true}}}};
  SKIFF_ASSIGN(const api::Kind kind, server.kind_of(mapping));
  const auto done = server.client().write(
      {.verb = client::Verb::kCreate, .resource = kind.resource, .body = mapping});
  if (!done && done.error().code != Code::kAlreadyExists) return std::unexpected(done.error());
  return {};
}

// A free name: train, train-2, train-3, ...
Result<json::value> create_job(Connection& server, const api::Kind& kind, json::value manifest,
                               bool named) {
  const std::string wanted(api::name(manifest));
  for (int n = 2;; ++n) {
    auto done = server.client().write({.verb = client::Verb::kCreate,
                                       .resource = kind.resource,
                                       .ns = std::string(api::ns(manifest)),
                                       .body = manifest});
    if (done || named || done.error().code != Code::kAlreadyExists || n > 1000) return done;
    json::set(manifest, {"metadata", "name"}, json::string(fmt::format("{}-{}", wanted, n)));
  }
}

std::string state_of(const json::value& job) {
  const json::array& conditions = json::get_array(job, {"status", "conditions"});
  return conditions.empty() ? "" : std::string(json::get_string(conditions.back(), {"type"}));
}

// The exit code of a container that failed by itself, so that scripts around us see it. Pods of a
// failed job are ended and removed, so it is looked for all the time; an end by a signal of ours
// counts only where there is nothing better.
class FailureCode {
 public:
  void look(const std::vector<Object>& pods) {
    for (const Object& pod : pods) {
      for (const json::value& status : json::get_array(*pod, {"status", "containerStatuses"})) {
        for (const std::string_view state : {"lastState", "state"}) {
          const auto code = json::get_int(status, {state, "terminated", "exitCode"});
          if (code && *code != 0 && (code_ == 0 || code_ > 128)) code_ = static_cast<int>(*code);
        }
      }
    }
  }
  int code() const { return code_ == 0 ? 1 : code_; }

 private:
  int code_ = 0;
};

int follow_job(Context& context, Connection& server, const api::Kind& kind,
               const json::value& job) {
  const std::string ns(api::ns(job)), name(api::name(job));
  const bool colour = context.globals.colour;
  Follower follower(server, {.colour = colour});
  FailureCode failure;
  std::string last;
  for (;;) {
    const auto now = server.client().get(kind.resource, ns, name);
    if (!now && now.error().code == Code::kNotFound) {
      return report({.message = fmt::format("{} {} was deleted", kind.resource.kind, name)});
    }
    const auto pods = pods_of_job(server, ns, name);
    if (pods) {
      follower.add(*pods);
      failure.look(*pods);
    }
    const std::string state = now ? state_of(*now) : last;
    if (state != last) {
      fmt::print("{}\n", paint(fmt::format("{}/{}: {}", kind.singular, name, state), Colour::kBold,
                               colour));
      std::fflush(stdout);
      last = state;
    }
    if (state == "Succeeded" || state == "Failed") {
      if (state == "Succeeded") follower.join();
      const int code = state == "Succeeded" ? 0 : failure.code();
      if (code != 0) fmt::print("ask: skiff why {}/{} -n {}\n", kind.singular, name, ns);
      return code;
    }
    if (g_interrupted) {
      fmt::print(
          "\n{0}/{1} goes on. Follow it: skiff logs {0}/{1} --all -f -n {2}; stop it: skiff delete "
          "{0}/{1} -n {2}\n",
          kind.singular, name, ns);
      _exit(130);  // followers are blocked in reads; the job itself needs nothing from us
    }
    std::this_thread::sleep_for(100ms);
  }
}

int run_train(Context& context, Options options) {
  TrainOptions& train = options.train;
  std::error_code error;
  const std::filesystem::path script = std::filesystem::canonical(train.script, error);
  if (error || std::filesystem::is_directory(script)) {
    return report({.message = fmt::format("{}: there is no such script", train.script)});
  }
  train.script = script;
  if (train.working_dir.empty()) train.working_dir = std::filesystem::current_path();
  train.data = context.globals.data;
  const bool named = !train.name.empty();
  if (!named) train.name = job_name_from(train.script);
  auto server = context.connect();
  if (!server) return report(server.error());
  train.ns = context.ns();
  auto manifest = train_manifest(train);
  if (!manifest) return report(manifest.error());
  if (auto mapped = map_host_image(**server); !mapped) return report(mapped.error());
  const auto kind = (*server)->kind_of(*manifest);
  if (!kind) return report(kind.error());
  const auto job = create_job(**server, *kind, *manifest, named);
  if (!job) return report(job.error());
  fmt::print("{}/{} created in namespace {}\n", kind->singular, api::name(*job), train.ns);
  std::fflush(stdout);
  if (options.detach) return 0;
  std::signal(SIGINT, [](int) { g_interrupted = true; });
  return follow_job(context, **server, *kind, *job);
}

}  // namespace

void add_train(CLI::App& app, Context& context, int& exit_code) {
  auto options = std::make_shared<Options>();
  TrainOptions& train = options->train;
  CLI::App* verb = app.add_subcommand("train", "Train a script on several workers, output here");
  verb->add_option("script", train.script, "Python script")->required();
  verb->add_option("arguments", train.arguments, "Arguments of the script (after --)");
  verb->add_option("--framework", train.framework, "tensorflow or pytorch")
      ->required()
      ->check(CLI::IsMember({"tensorflow", "pytorch"}));
  verb->add_option("--workers", train.workers, "Workers")->capture_default_str();
  verb->add_option("--ps", train.ps, "Parameter servers (TensorFlow)")->capture_default_str();
  verb->add_option("--name", train.name, "Name of the job; else from the script");
  verb->add_option("--python", train.python, "Interpreter")->capture_default_str();
  verb->add_option("--cpu", train.cpu, "CPU per replica, e.g. 500m");
  verb->add_option("--memory", train.memory, "Memory per replica, e.g. 1Gi");
  verb->add_option("--gpus", train.gpus, "GPUs per replica");
  verb->add_option("--env", train.env, "NAME=value");
  verb->add_option("--retries", train.retries, "Restarts before the job fails")
      ->capture_default_str();
  verb->add_option("--workdir", train.working_dir, "Working directory; else this one");
  verb->add_flag("-d,--detach", options->detach, "Do not follow the output");
  verb->callback([options, &context, &exit_code] { exit_code = run_train(context, *options); });
}

}  // namespace skiff::cli
