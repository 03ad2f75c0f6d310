// skiff port-forward: a port of a pod on this machine's loopback.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <memory>

#include "api/meta.h"
#include "base/strings.h"
#include "cli/pod_talk.h"
#include "cli/verbs/verbs.h"

namespace skiff::cli {
namespace {

struct PortForwardOptions {
  std::string target = {};
  std::vector<std::string> ports = {};
};

struct Pair {
  int local = 0, remote = 0;
};

Result<int> read_port(std::string_view text, int least) {
  int port = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size() || port < least || port > 65535) {
    return fail(Code::kBadRequest, fmt::format("\"{}\" is no port", text));
  }
  return port;
}

// REMOTE, LOCAL:REMOTE or :REMOTE (any free port here).
Result<Pair> read_port_pair(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == text.npos) {
    SKIFF_ASSIGN(const int both, read_port(text, 1));
    return Pair{both, both};
  }
  Pair out;
  if (colon > 0) {
    SKIFF_ASSIGN(out.local, read_port(text.substr(0, colon), 0));
  }
  SKIFF_ASSIGN(out.remote, read_port(text.substr(colon + 1), 1));
  return out;
}

bool runs(const json::value& pod) {
  return json::get_string(pod, {"status", "phase"}) == "Running";
}

// The port of the pods behind a service's port.
int target_port(const json::value& service, int port) {
  for (const json::value& one : json::get_array(service, {"spec", "ports"})) {
    if (json::get_int(one, {"port"}).value_or(0) != port) continue;
    return static_cast<int>(json::get_int(one, {"targetPort"}).value_or(port));
  }
  return port;
}

struct Chosen {
  std::string pod = {};
  std::optional<json::value> service = {};
};

// A pod by its name, or one that runs of those that a service or workload selects.
Result<Chosen> choose_pod(Context& context, Connection& server, const std::string& target) {
  const std::size_t slash = target.find('/');
  if (slash == std::string::npos) return Chosen{.pod = target};
  SKIFF_ASSIGN(const api::Kind kind, server.kind(target.substr(0, slash)));
  const std::string name = target.substr(slash + 1);
  if (kind.resource.kind == "Pod") return Chosen{.pod = name};
  SKIFF_ASSIGN(json::value object, server.client().get(kind.resource, context.ns(), name));
  const bool service = kind.resource.kind == "Service";
  const json::value* labels = service ? json::find(object, {"spec", "selector"})
                                      : json::find(object, {"spec", "selector", "matchLabels"});
  std::vector<std::string> words;
  if (labels != nullptr && labels->is_object()) {
    for (const auto& [key, value] : labels->get_object()) {
      if (value.is_string()) words.push_back(fmt::format("{}={}", key, value.get_string().c_str()));
    }
  }
  if (words.empty()) return fail(Code::kBadRequest, fmt::format("{} selects no pods", target));
  SKIFF_ASSIGN(const api::Kind pods, server.kind("pods"));
  SKIFF_ASSIGN(const client::List list, server.client().list(pods.resource, context.ns(),
                                                             {.label_selector = join(words, ",")}));
  for (const Object& pod : list.items) {
    if (!runs(*pod)) continue;
    Chosen out{.pod = std::string(api::name(*pod))};
    if (service) out.service = std::move(object);
    return out;
  }
  return fail(Code::kNotFound, fmt::format("no pod of {} runs", target));
}

Result<void> run_port_forward(Context& context, const PortForwardOptions& options) {
  SKIFF_ASSIGN(Connection * server, context.connect());
  SKIFF_ASSIGN(const Chosen chosen, choose_pod(context, *server, options.target));
  SKIFF_ASSIGN(const api::Kind pods, server->kind("pods"));
  SKIFF_ASSIGN(const json::value pod,
               server->client().get(pods.resource, context.ns(), chosen.pod));
  if (!runs(pod)) {
    return fail(Code::kBadRequest,
                fmt::format("pod {} does not run: it is {} (skiff why pod/{})", chosen.pod,
                            json::get_string(pod, {"status", "phase"}), chosen.pod));
  }
  for (const std::string& text : options.ports) {
    SKIFF_ASSIGN(Pair pair, read_port_pair(text));
    if (chosen.service) pair.remote = target_port(*chosen.service, pair.remote);
    SKIFF_ASSIGN(const int port,
                 forward_port(*server, context.ns(), chosen.pod, pair.local, pair.remote));
    fmt::print("Forwarding from 127.0.0.1:{} -> {}\n", port, pair.remote);
  }
  std::fflush(stdout);
  while (true) ::pause();
}

}  // namespace

void add_port_forward(CLI::App& app, Context& context, int& exit_code) {
  auto options = std::make_shared<PortForwardOptions>();
  CLI::App* verb = app.add_subcommand("port-forward", "Reach a port of a pod from here");
  verb->add_option("target", options->target, "POD, service/NAME, deployment/NAME, ...")
      ->required();
  verb->add_option("ports", options->ports, "PORT, LOCAL:REMOTE, or :REMOTE for any port here")
      ->required();
  verb->footer(R"help(
Examples:
  skiff port-forward notebook-0 8888
  skiff port-forward service/model 9000:80
It goes on until ^C.
)help");
  verb->callback([options, &context, &exit_code] {
    if (auto done = run_port_forward(context, *options); !done) exit_code = report(done.error());
  });
}

}  // namespace skiff::cli
