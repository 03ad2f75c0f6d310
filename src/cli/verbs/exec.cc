// skiff exec and attach: a program in a pod, with this terminal.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/pod_talk.h"
#include "cli/verbs/verbs.h"

namespace skiff::cli {
namespace {

struct ExecOptions {
  Talk talk = {};
  bool in = false;
  bool tty = false;
};

Result<int> run_talk(Context& context, ExecOptions options) {
  SKIFF_ASSIGN(Connection * server, context.connect());
  options.talk.ns = context.ns();
  if (options.talk.pod.starts_with("pod/")) options.talk.pod.erase(0, 4);
  if (options.in) options.talk.in_fd = STDIN_FILENO;
  options.talk.tty = options.tty && isatty(STDIN_FILENO) != 0;
  if (options.tty && !options.talk.tty) {
    fmt::print(stderr, "standard input is no terminal here, so the program gets none\n");
  }
  return talk_to_program(*server, options.talk);
}

CLI::App* add_talk_verb(CLI::App& app, Context& context, int& exit_code, const char* name,
                        const char* about, const std::shared_ptr<ExecOptions>& options) {
  CLI::App* verb = app.add_subcommand(name, about);
  verb->add_option("pod", options->talk.pod, "POD or pod/POD")->required();
  verb->add_option("-c,--container", options->talk.container, "Container (the pod's only one)");
  verb->add_flag("-i,--stdin", options->in, "Pass this command's input on");
  verb->add_flag("-t,--tty", options->tty, "The program gets a terminal");
  verb->callback([options, &context, &exit_code] {
    const auto code = run_talk(context, *options);
    exit_code = code ? *code : report(code.error());
  });
  return verb;
}

}  // namespace

void add_exec(CLI::App& app, Context& context, int& exit_code) {
  auto options = std::make_shared<ExecOptions>();
  CLI::App* verb =
      add_talk_verb(app, context, exit_code, "exec", "Run a program in a pod", options);
  verb->add_option("command", options->talk.command, "After --: the program and its arguments")
      ->required();
  verb->footer(R"help(
Examples:
  skiff exec trainer-0 -- nvidia-smi
  skiff exec -it trainer-0 -- bash             a shell in the pod
  skiff exec -i trainer-0 -- python < look.py
The exit code is the program's.
)help");

  auto attached = std::make_shared<ExecOptions>();
  add_talk_verb(app, context, exit_code, "attach", "See and feed the program that a pod runs",
                attached)
      ->footer(R"help(
Examples:
  skiff attach trainer-0          its output from now on
  skiff attach -it shell          a pod whose container has stdin and tty
)help");
}

}  // namespace skiff::cli
