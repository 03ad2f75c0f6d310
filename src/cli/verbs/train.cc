// skiff train: one command from a script to a distributed job, its output here.
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <thread>

#include "api/meta.h"
#include "base/strings.h"
#include "cli/follow.h"
#include "cli/printer.h"
#include "cli/progress_text.h"
#include "cli/screen.h"
#include "cli/train/code.h"
#include "cli/train/framework.h"
#include "cli/train/heard_progress.h"
#include "cli/train/manifest.h"
#include "cli/verbs/verbs.h"

namespace skiff::cli {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr auto kLookEvery = 200ms;
constexpr auto kServerSilence = 5s;  // of a server, before it is told

struct TrainVerbOptions {
  TrainOptions train;
  bool copy = false;
  bool keep = false;
  bool detach = false;
};

// Only a signal handler can tell us, and it has no argument.
std::atomic<int> g_interrupts = 0;
std::atomic<bool> g_following = false;
std::atomic<int> g_leave_with = -1;  // where only output is waited for: the code to leave with

// Whoever follows looks at the count. Before that a first one stops us where nothing is left
// behind, and a second one, where the server does not answer, at once.
void on_train_interrupt(int) {
  const bool again = g_interrupts++ > 0;
  if (const int code = g_leave_with; code >= 0) _exit(code);
  if (again && !g_following) _exit(130);
}

Time now() { return std::chrono::floor<Duration>(std::chrono::system_clock::now()); }

std::string read_file_text(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// skiff.dev/host must mean this machine before the first pod asks.
Result<void> map_host_image(Connection& server) {
  const json::value mapping = {{"apiVersion", "skiff.dev/v1"},
                               {"kind", "ImageMapping"},
                               {"metadata", {{"name", "skiff-host"}}},
                               {"spec", {{"pattern", json::string(kHostImage)}, {"host", true}}}};
  const auto kind = server.kind_of(mapping);
  if (!kind) {
    return fail(Code::kBadRequest,
                "this server is no Skiff, so a job cannot run on its own files: name an image with "
                "--image");
  }
  const auto done = server.client().write(
      {.verb = client::Verb::kCreate, .resource = kind->resource, .body = mapping});
  if (!done && done.error().code != Code::kAlreadyExists) return std::unexpected(done.error());
  return {};
}

const api::Resource& maps_resource() {
  static const api::Resource kMaps{.version = "v1", .plural = "configmaps", .kind = "ConfigMap"};
  return kMaps;
}

// Makes the ConfigMaps of a copy; they belong to the job as soon as there is one.
Result<void> upload_code(Connection& server, TrainOptions& train) {
  const fs::path script(train.script);
  SKIFF_ASSIGN(const CodeFolder code, read_code(script.parent_path()));
  SKIFF_ASSIGN(train.code, pack_code(code.files));
  if (!code.left_out.empty()) {
    const std::string names = printable(join(code.left_out, ", "));
    fmt::print(stderr, "links that lead to no file of the folder are not copied: {}\n", names);
  }
  for (CodeMap& map : train.code) {
    if (g_interrupts > 0) break;
    SKIFF_ASSIGN(
        const json::value made,
        server.client().write(
            {.verb = client::Verb::kCreate,
             .resource = maps_resource(),
             .ns = train.ns,
             .body = json::object{
                 {"apiVersion", "v1"},
                 {"kind", "ConfigMap"},
                 {"metadata", {{"generateName", train.name + "-code-"}, {"namespace", train.ns}}},
                 {"binaryData", std::move(map.binary_data)},
                 {"immutable", true}}}));
    map.name = api::name(made);
  }
  train.script = script.filename();
  if (g_interrupts > 0) return {};
  fmt::print("copied {} file(s) of {} into the cluster\n", code.files.size(),
             script.parent_path().native());
  return {};
}

void own_code(Connection& server, const TrainOptions& train, const json::value* job) {
  for (const CodeMap& map : train.code) {
    if (map.name.empty()) continue;
    client::Write write{.verb = client::Verb::kDelete,
                        .resource = maps_resource(),
                        .ns = train.ns,
                        .name = map.name,
                        .body = json::object{}};
    if (job != nullptr) {
      write.verb = client::Verb::kMergePatch;
      write.body = json::object{
          {"metadata", {{"ownerReferences", json::array{api::owner_reference(*job)}}}}};
    }
    (void)server.client().write(write);  // the job runs without it
  }
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

std::string train_state(const json::value& job) {
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

class Follow {
 public:
  Follow(Context& context, Connection& server, const api::Kind& kind, const json::value& job,
         bool keep)
      : server_(server),
        kind_(kind),
        ns_(api::ns(job)),
        name_(api::name(job)),
        keep_(keep),
        colour_(context.globals.colour),
        live_(isatty(STDOUT_FILENO) != 0),
        screen_(stdout, live_) {}

  int run() {
    g_following = true;
    Follower follower(
        server_, {.colour = colour_,
                  .print = [this](std::string_view line) { screen_.line(line); },
                  .hear = [this](std::string_view replica,
                                 std::string_view line) { heard_.hear(replica, line, now()); }});
    for (;;) {
      const auto job = server_.client().get(kind_.resource, ns_, name_);
      if (!job && job.error().code == Code::kNotFound) {
        screen_.status({});
        g_leave_with = 1;
        return report({.message = fmt::format("{} {} was deleted", kind_.resource.kind, name_)});
      }
      const auto pods = pods_of_job(server_, ns_, name_, kind_.resource.kind);
      if (pods) {
        follower.add(*pods);
        failure_.look(*pods);
      }
      if (job) {
        show(*job);
      } else {
        unanswered(job.error());
      }
      if (state_ == "Succeeded" || state_ == "Failed") return ended(follower);
      if (g_interrupts > 0) interrupted();
      std::this_thread::sleep_for(kLookEvery);
    }
  }

 private:
  std::string shown() const { return fmt::format("{}/{}", kind_.singular, name_); }

  // A server may be away for a moment: told once, when it takes longer.
  void unanswered(const Error& error) {
    const auto at = std::chrono::steady_clock::now();
    if (!silent_since_) silent_since_ = at;
    if (silence_told_ || at - *silent_since_ < kServerSilence) return;
    silence_told_ = true;
    screen_.line(
        fmt::format("{}: cannot be asked about, trying on: {}", shown(), printable(error.message)));
  }

  void show(const json::value& job) {
    silent_since_.reset();
    silence_told_ = false;
    const std::string state = train_state(job);
    if (state != state_) {
      screen_.line(paint(fmt::format("{}: {}", shown(), printable(state)), Colour::kBold, colour_));
      state_ = state;
    }
    if (live_) {
      return screen_.status(
          progress_bar(heard_.brought_up_to_date(job), now(), screen_.width() - 1));
    }
    if (lines_.due(job, now())) {
      screen_.line(fmt::format("{}: {}", shown(), progress_text(job, now())));
    }
  }

  int ended(Follower& follower) {
    screen_.status({});
    const int code = state_ == "Succeeded" ? 0 : failure_.code();
    // Nothing is left to decide: who does not want to wait for the rest of the output need not.
    g_leave_with = code;
    if (code == 0) follower.join();
    if (code != 0) explain_failure();
    return code;
  }

  void explain_failure() {
    const auto told = reasons(server_, kind_, ns_, name_);
    if (!told) return screen_.line(fmt::format("ask: skiff why {} -n {}", shown(), ns_));
    for (const std::string& line : *told) screen_.line(printable(line));
  }

  // True: the job is to be stopped. A second Ctrl-C says so, too; who is not at a terminal has said
  // it with the first.
  bool asked_to_stop() {
    if (keep_) return false;
    if (isatty(STDIN_FILENO) == 0 || !live_) return true;
    screen_.line(fmt::format("Stop {}? [y/N] (Ctrl-C again stops it, too)", shown()));
    pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    while (g_interrupts < 2) {
      if (::poll(&input, 1, 100) <= 0) continue;
      char answer = 'n';
      return ::read(STDIN_FILENO, &answer, 1) == 1 && (answer == 'y' || answer == 'Y');
    }
    return true;
  }

  // Does not come back: followers are blocked in reads.
  [[noreturn]] void interrupted() {
    screen_.status({});
    if (!asked_to_stop()) {
      screen_.line(
          fmt::format("{0} goes on. Follow it: skiff logs {0} --all -f -n {1}; stop it: skiff "
                      "delete {0} -n {1}",
                      shown(), ns_));
      _exit(130);
    }
    const auto done = server_.client().write({.verb = client::Verb::kDelete,
                                              .resource = kind_.resource,
                                              .ns = ns_,
                                              .name = name_,
                                              .body = json::object{}});
    if (!done && done.error().code != Code::kNotFound) {
      report(done.error());
      _exit(1);
    }
    screen_.line(fmt::format("{} is deleted; its programs are being stopped", shown()));
    const auto end = std::chrono::steady_clock::now() + 35s;  // a pod's own grace is 30
    while (std::chrono::steady_clock::now() < end && g_interrupts < 3) {
      const auto left = pods_of_job(server_, ns_, name_, kind_.resource.kind);
      if (!left || left->empty()) break;
      std::this_thread::sleep_for(kLookEvery);
    }
    _exit(130);
  }

  Connection& server_;
  const api::Kind kind_;
  const std::string ns_, name_;
  const bool keep_, colour_, live_;
  Screen screen_;
  FailureCode failure_ = {};
  ProgressLines lines_ = {};
  HeardProgress heard_ = {};
  std::string state_ = {};
  std::optional<std::chrono::steady_clock::time_point> silent_since_ = {};
  bool silence_told_ = false;
};

// What the options leave open: where the script is, what it is for, where its results go.
Result<void> complete(Context& context, TrainVerbOptions& options) {
  TrainOptions& train = options.train;
  std::error_code error;
  const fs::path script = fs::canonical(train.script, error);
  if (error || fs::is_directory(script)) {
    return fail(Code::kBadRequest, fmt::format("{}: there is no such script", train.script));
  }
  train.script = script;
  if (train.framework.empty()) {
    const auto guess = guess_framework(read_file_text(script));
    if (!guess) {
      return fail(Code::kBadRequest,
                  fmt::format("{} imports no framework that is known here; say which one it is "
                              "for: --framework {}",
                              script.filename().native(), framework_names()));
    }
    train.framework = guess->framework->name;
    fmt::print("{} imports {}: a {} (--framework says otherwise)\n", script.filename().native(),
               guess->module, guess->framework->kind);
  }
  if (train.working_dir.empty()) train.working_dir = fs::current_path();
  train.data = context.globals.data;
  // Folders of this machine mean nothing to another.
  const bool remote = !context.globals.kubeconfig.empty() ||
                      !fs::exists(context.globals.data + "/kubeconfig", error);
  options.copy = options.copy || remote;
  for (std::string& path : train.datasets) {
    const fs::path whole = fs::canonical(path, error);
    if (error) return fail(Code::kBadRequest, fmt::format("--dataset {}: it is not there", path));
    if (remote) {
      return fail(Code::kBadRequest,
                  fmt::format("--dataset {}: the server runs elsewhere and cannot see it; copy it "
                              "into a claim (skiff cp) and use --claim NAME:/path",
                              path));
    }
    path = whole;
  }
  return {};
}

// The job, which its copy of the code belongs to; where there is none, the copy is taken away.
Result<json::value> make_job(Connection& server, const api::Kind& kind, TrainVerbOptions& options,
                             bool named) {
  TrainOptions& train = options.train;
  const auto make = [&]() -> Result<json::value> {
    if (options.copy) SKIFF_TRY(upload_code(server, train));
    SKIFF_ASSIGN(json::value manifest, train_manifest(train));
    if (g_interrupts > 0) return fail(Code::kBadRequest, "interrupted before the job was made");
    return create_job(server, kind, std::move(manifest), named);
  };
  auto job = make();
  own_code(server, train, job ? &*job : nullptr);
  return job;
}

Result<int> run_train(Context& context, TrainVerbOptions options) {
  TrainOptions& train = options.train;
  SKIFF_TRY(complete(context, options));
  const bool named = !train.name.empty();
  if (!named) train.name = job_name_from(train.script);
  SKIFF_ASSIGN(Connection * server, context.connect());
  train.ns = context.ns();
  // What is wrong is said before anything is made.
  TrainOptions trial = train;
  if (options.copy) trial.code.emplace_back();
  SKIFF_ASSIGN(const json::value shape, train_manifest(trial));
  SKIFF_ASSIGN(const api::Kind kind, server->kind_of(shape));
  if (train.image == kHostImage) SKIFF_TRY(map_host_image(*server));
  std::signal(SIGINT, on_train_interrupt);
  const auto job = make_job(*server, kind, options, named);
  if (!job) {
    const int code = report(job.error());
    return g_interrupts > 0 ? 130 : code;
  }
  fmt::print("{}/{} created in namespace {}\n", kind.singular, api::name(*job), train.ns);
  std::fflush(stdout);
  if (options.detach) return 0;
  return Follow(context, *server, kind, *job, options.keep).run();
}

constexpr const char* kTrainFooter = R"help(
Examples:
  skiff train train.py                          one worker; the framework from what it imports
  skiff train train.py --workers 4 -- --epochs 10
                                                what follows -- is the script's
  skiff train train.py --workers 2 --nproc 4    PyTorch: 2 pods of 4 processes (torchrun)
  skiff train hvd.py --workers 2 --nproc 2      Horovod or mpi4py: mpirun with 4 processes
  skiff train train.py --workers 3 --ps 2       TensorFlow: 3 workers, 2 parameter servers
  skiff train train.py --gpus 1 --memory 8Gi --dataset ~/images
  skiff train train.py --copy --claim models:/models
                                                a copy of the code, results into a claim
  skiff train train.py --detach --name night    and later: skiff describe, logs, why

The code: here the folder of the script and the working directory are mounted, so that what the
script writes beside itself stays. With --copy, and always where the server runs elsewhere, the
folder of the script is copied into ConfigMaps (7.8 MiB at most, read-only, hidden files left out).

Progress: lines such as "step 10/100 loss=0.3", bars of Keras and tqdm, or JSON lines written to
$SKIFF_PROGRESS_FILE become the line at the bottom, and status.progress of the job.

Ctrl-C asks whether to stop the job; --keep leaves it running. The exit code is the script's.
)help";

}  // namespace

void add_train(CLI::App& app, Context& context, int& exit_code) {
  auto options = std::make_shared<TrainVerbOptions>();
  TrainOptions& train = options->train;
  CLI::App* verb = app.add_subcommand("train", "Train a script on several workers, output here");
  verb->add_option("script", train.script, "Python script")->required();
  verb->add_option("arguments", train.arguments, "Arguments of the script (after --)");
  verb->add_option("--framework", train.framework,
                   framework_names() + "; else from what the script imports");
  verb->add_option("--workers", train.workers, "Workers")->capture_default_str();
  verb->add_option("--ps", train.ps, "Parameter servers (TensorFlow, Paddle)")
      ->capture_default_str();
  verb->add_option("--nproc", train.nproc, "Processes in each pod (PyTorch, MPI)")
      ->capture_default_str();
  verb->add_option("--name", train.name, "Name of the job; else from the script");
  verb->add_option("--python", train.python, "Interpreter")->capture_default_str();
  verb->add_option("--image", train.image, "Image; this machine's own files where absent");
  verb->add_option("--cpu", train.cpu, "CPU per replica, e.g. 500m");
  verb->add_option("--memory", train.memory, "Memory per replica, e.g. 1Gi");
  verb->add_option("--gpus,--gpu", train.gpus, "GPUs per replica");
  verb->add_option("--env", train.env, "NAME=value");
  verb->add_option("--dataset", train.datasets, "File or folder of this machine, read-only");
  verb->add_option("--claim", train.claims, "NAME:/path, a PersistentVolumeClaim");
  verb->add_flag("--copy", options->copy, "Run on a copy of the script's folder");
  verb->add_option("--retries", train.retries, "Restarts before the job fails")
      ->capture_default_str();
  verb->add_option("--workdir", train.working_dir, "Working directory; else this one");
  verb->add_flag("--keep", options->keep, "Ctrl-C leaves the job running");
  verb->add_flag("-d,--detach", options->detach, "Do not follow the output");
  verb->footer(kTrainFooter);
  verb->callback([options, &context, &exit_code] {
    const auto done = run_train(context, *options);
    exit_code = done ? *done : report(done.error());
  });
}

}  // namespace skiff::cli
