// skiff run: a pod in one line; its output here, its exit code ours.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <csignal>
#include <memory>
#include <thread>

#include "api/meta.h"
#include "cli/file_io.h"
#include "cli/follow.h"
#include "cli/pod_talk.h"
#include "cli/verbs/verbs.h"

namespace skiff::cli {
namespace {

using namespace std::chrono_literals;

const api::Resource kRunPods{.version = "v1", .plural = "pods", .kind = "Pod"};

struct RunOptions {
  std::string name = {};
  std::string image = "skiff.dev/host";
  std::vector<std::string> command = {};
  std::vector<std::string> env = {};
  std::vector<std::string> limits = {};
  bool in = false, tty = false, remove = false, detach = false;
};

Result<std::pair<std::string, std::string>> read_assignment(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == 0 || equals == std::string::npos) {
    return fail(Code::kBadRequest, fmt::format("\"{}\": write NAME=VALUE", text));
  }
  return std::pair{text.substr(0, equals), text.substr(equals + 1)};
}

Result<json::value> manifest(const RunOptions& options) {
  json::object container = {{"name", options.name}, {"image", options.image}};
  json::array words, env;
  for (const std::string& word : options.command) words.emplace_back(word);
  if (!words.empty()) container["command"] = std::move(words);
  for (const std::string& text : options.env) {
    SKIFF_ASSIGN(const auto pair, read_assignment(text));
    env.push_back(json::object{{"name", pair.first}, {"value", pair.second}});
  }
  if (!env.empty()) container["env"] = std::move(env);
  json::object limits;
  for (const std::string& text : options.limits) {
    SKIFF_ASSIGN(const auto pair, read_assignment(text));
    limits[pair.first] = pair.second;
  }
  if (!limits.empty()) container["resources"] = json::object{{"limits", std::move(limits)}};
  if (options.in) {
    container["stdin"] = true;
    container["stdinOnce"] = true;
  }
  if (options.tty) container["tty"] = true;
  return json::object{{"apiVersion", "v1"},
                      {"kind", "Pod"},
                      {"metadata", json::object{{"name", options.name},
                                                {"labels", json::object{{"run", options.name}}}}},
                      {"spec", json::object{{"restartPolicy", "Never"},
                                            {"containers", json::array{std::move(container)}}}}};
}

// What interrupts this command. Blocked before any thread begins, so that nobody else takes it.
sigset_t block_interrupts() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

// Until it is destroyed: the first of the signals calls `end`, and ends this command.
std::jthread end_on_interrupt(const sigset_t& signals, std::function<void()> end) {
  return std::jthread([signals, end = std::move(end)](const std::stop_token& stop) {
    constexpr timespec kStep{.tv_sec = 0, .tv_nsec = 100'000'000};
    while (!stop.stop_requested()) {
      const int signal = ::sigtimedwait(&signals, nullptr, &kStep);
      if (signal < 0) continue;
      restore_terminal();
      end();
      ::_exit(128 + signal);
    }
  });
}

const json::value* state_of_container(const json::value& pod, std::string_view state) {
  const json::array& statuses = json::get_array(pod, {"status", "containerStatuses"});
  return statuses.empty() ? nullptr : json::find(statuses.front(), {"state", state});
}

// Why it does not begin, in the words of who keeps it waiting; empty where nothing is known.
std::string waiting_reason(const json::value& pod) {
  for (const json::value& condition : json::get_array(pod, {"status", "conditions"})) {
    if (json::get_string(condition, {"type"}) == "PodScheduled" &&
        json::get_string(condition, {"status"}) == "False") {
      return std::string(json::get_string(condition, {"message"}));
    }
  }
  const json::value* waiting = state_of_container(pod, "waiting");
  if (waiting == nullptr) return "";
  const std::string_view message = json::get_string(*waiting, {"message"});
  return message.empty() ? ""
                         : fmt::format("{}: {}", json::get_string(*waiting, {"reason"}), message);
}

// Asks for the pod until `enough`; says once why it waits.
Result<json::value> wait_until(Connection& server, const RunOptions& options, const std::string& ns,
                               bool (*enough)(const json::value& pod)) {
  const auto begin = std::chrono::steady_clock::now();
  std::string told;
  while (true) {
    SKIFF_ASSIGN(json::value pod, server.client().get(kRunPods, ns, options.name));
    if (enough(pod) || pod_ended(pod)) return pod;
    // What passes in a moment is not worth a word.
    const std::string why = waiting_reason(pod);
    if (!why.empty() && why != told && std::chrono::steady_clock::now() - begin > 1s) {
      fmt::print(stderr, "waiting: {}\n", why);
      told = why;
    }
    std::this_thread::sleep_for(50ms);
  }
}

Result<void> print_output(Connection& server, const RunOptions& options, const std::string& ns) {
  return server.download(
      {.target = log_target(ns, options.name, {.follow = true})},
      [](std::string_view piece) -> Result<void> {
        (void)write_all(STDOUT_FILENO, piece);
        return {};
      },
      std::nullopt);
}

Result<void> show_pod(Connection& server, const RunOptions& options, const std::string& ns) {
  SKIFF_ASSIGN(const json::value pod, wait_until(server, options, ns, [](const json::value& one) {
                 return state_of_container(one, "running") != nullptr ||
                        state_of_container(one, "terminated") != nullptr;
               }));
  if (!options.in || state_of_container(pod, "running") == nullptr)
    return print_output(server, options, ns);
  const auto talked = talk_to_program(
      server, {.ns = ns, .pod = options.name, .in_fd = STDIN_FILENO, .tty = options.tty});
  if (talked) return {};
  // It may have ended before anybody listened; its log has what it said.
  SKIFF_ASSIGN(const json::value now, server.client().get(kRunPods, ns, options.name));
  if (pod_ended(now)) return print_output(server, options, ns);
  return std::unexpected(talked.error());
}

Result<void> remove(Connection& server, const std::string& ns, const std::string& name) {
  SKIFF_TRY(server.client().write(
      {.verb = client::Verb::kDelete, .resource = kRunPods, .ns = ns, .name = name}));
  return {};
}

Result<int> pod_exit_code(const json::value& pod) {
  if (const json::value* end = state_of_container(pod, "terminated")) {
    return static_cast<int>(json::get_int(*end, {"exitCode"}).value_or(1));
  }
  return fail(Code::kInternal, fmt::format("the pod ended without running: {}",
                                           json::get_string(pod, {"status", "message"})));
}

Result<int> run_pod(Context& context, RunOptions options) {
  const sigset_t signals = block_interrupts();
  SKIFF_ASSIGN(Connection * server, context.connect());
  const std::string ns = context.ns();
  if (options.tty && isatty(STDIN_FILENO) == 0) {
    fmt::print(stderr, "standard input is no terminal here, so the program gets none\n");
    options.tty = false;
  }
  options.in = options.in || options.tty;
  SKIFF_ASSIGN(json::value pod, manifest(options));
  SKIFF_TRY(server->client().write(
      {.verb = client::Verb::kCreate, .resource = kRunPods, .ns = ns, .body = std::move(pod)}));
  if (options.detach) {
    fmt::print("pod/{} created\n", options.name);
    return 0;
  }
  const std::jthread interrupted =
      end_on_interrupt(signals, [&] { (void)remove(*server, ns, options.name); });
  const auto shown = show_pod(*server, options, ns);
  if (!shown) return std::unexpected(shown.error());
  SKIFF_ASSIGN(const json::value end, wait_until(*server, options, ns, [](const json::value& one) {
                 return state_of_container(one, "terminated") != nullptr;
               }));
  if (options.remove) SKIFF_TRY(remove(*server, ns, options.name));
  return pod_exit_code(end);
}

}  // namespace

void add_run(CLI::App& app, Context& context, int& exit_code) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* verb = app.add_subcommand("run", "Run a pod in one line");
  verb->add_option("name", options->name, "Name of the pod")->required();
  verb->add_option("command", options->command, "After --: the program and its arguments");
  verb->add_option("--image", options->image, "Image (this machine's own files)")
      ->capture_default_str();
  verb->add_option("--env", options->env, "NAME=VALUE, more than once")->allow_extra_args(false);
  verb->add_option("--limit", options->limits, "RESOURCE=AMOUNT, as memory=2Gi or nvidia.com/gpu=1")
      ->allow_extra_args(false);
  verb->add_flag("-i,--stdin", options->in, "Pass this command's input on");
  verb->add_flag("-t,--tty", options->tty, "The program gets this terminal");
  verb->add_flag("--rm", options->remove, "Remove the pod when it has ended");
  verb->add_flag("-d,--detach", options->detach, "Only create it");
  verb->footer(R"help(
Examples:
  skiff run hello -- echo hello
  skiff run shell -it --rm -- bash
  skiff run train --env EPOCHS=3 --limit memory=2Gi -- python train.py
The exit code is the program's. ^C ends the pod and removes it.
)help");
  verb->callback([options, &context, &exit_code] {
    const auto code = run_pod(context, *options);
    exit_code = code ? *code : report(code.error());
  });
}

}  // namespace skiff::cli
