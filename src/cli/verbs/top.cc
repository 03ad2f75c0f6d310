// skiff top: what pods and nodes use now; --watch shows it again and again.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>
#include <thread>

#include "api/metrics/metrics.h"
#include "cli/top_text.h"
#include "cli/verbs/verbs.h"

namespace skiff::cli {
namespace {

using namespace std::chrono_literals;

constexpr const char* kClear = "\033[H\033[2J";

struct TopOptions {
  std::string name = {};
  TopForm form = {};
  bool watch = false;
  double seconds = 2;
};

// That a path is not there says nothing to a newcomer.
Error explained(Error error, const TopOptions& options) {
  const auto says = [&](std::string_view words) { return error.message.contains(words); };
  const bool missing = error.code == Code::kNotFound;
  if (missing && (says("could not find the requested resource") || says("404 page not found"))) {
    error.message =
        "this server does not measure what is used: it has no metrics.k8s.io (a cluster needs "
        "metrics-server for it, a Skiff a node of its own)";
  } else if (missing && !options.name.empty() && says("metrics.k8s.io")) {
    error.message += " (it has not been measured yet, or nothing of it runs)";
  }
  return error;
}

Result<std::vector<Object>> read_usage(Context& context, Connection& server,
                                       const api::Resource& what, const TopOptions& options) {
  const bool every = context.globals.all_namespaces || !what.namespaced;
  const std::string ns = every ? "" : context.ns();
  if (!options.name.empty()) {
    auto one = server.client().get(what, what.namespaced ? context.ns() : "", options.name);
    if (!one) return std::unexpected(explained(std::move(one).error(), options));
    return std::vector<Object>{std::make_shared<const json::value>(std::move(*one))};
  }
  auto list = server.client().list(what, ns,
                                   {.label_selector = context.globals.selector,
                                    .field_selector = context.globals.field_selector});
  if (!list) return std::unexpected(explained(std::move(list).error(), options));
  return std::move(list->items);
}

Result<std::string> pods_text(Context& context, Connection& server, const TopOptions& options) {
  SKIFF_ASSIGN(const std::vector<Object> pods,
               read_usage(context, server, api::pod_metrics_kind().resource, options));
  if (pods.empty()) {
    return fmt::format("No pods are measured{}: none runs, or they began a moment ago.\n",
                       context.globals.all_namespaces ? "" : " in namespace " + context.ns());
  }
  TopForm form = options.form;
  form.with_namespace = context.globals.all_namespaces;
  return top_pods(pods, form);
}

Result<std::string> jobs_text(Context& context, Connection& server, const TopOptions& options) {
  constexpr std::string_view kJob = "training.kubeflow.org/job-name";
  // tfjob/mnist or mnist.
  const std::string name = options.name.substr(options.name.find('/') + 1);
  std::string& selector = context.globals.selector;
  const std::string given = selector;
  selector = fmt::format("{}{}{}{}", given, given.empty() ? "" : ",", kJob,
                         name.empty() ? "" : "=" + name);
  TopOptions all = options;
  all.name.clear();
  auto pods = read_usage(context, server, api::pod_metrics_kind().resource, all);
  selector = given;
  if (!pods) return std::unexpected(pods.error());
  if (pods->empty()) {
    return fmt::format("Nothing of {} is measured: it does not run, or it began a moment ago.\n",
                       name.empty() ? "any training job" : name);
  }
  TopForm form = options.form;
  form.with_namespace = context.globals.all_namespaces;
  return top_replicas(*pods, form);
}

Result<std::string> nodes_text(Context& context, Connection& server, const TopOptions& options) {
  SKIFF_ASSIGN(const std::vector<Object> metrics,
               read_usage(context, server, api::node_metrics_kind().resource, options));
  const api::Resource resource{
      .group = "", .version = "v1", .plural = "nodes", .kind = "Node", .namespaced = false};
  SKIFF_ASSIGN(
      client::List nodes,
      server.client().list(
          resource, "",
          {.label_selector = context.globals.selector,
           .field_selector = options.name.empty() ? "" : "metadata.name=" + options.name}));
  return top_nodes(metrics, nodes.items, options.form);
}

using Make = Result<std::string> (*)(Context&, Connection&, const TopOptions&);

Result<void> show_top(Context& context, const TopOptions& options, Make make) {
  SKIFF_ASSIGN(Connection * server, context.connect());
  while (true) {
    SKIFF_ASSIGN(const std::string text, make(context, *server, options));
    // Where it goes to a file or another program, one picture follows the other.
    if (options.watch && context.globals.colour) fmt::print("{}", kClear);
    fmt::print("{}", text);
    if (std::fflush(stdout) != 0 || !options.watch) return {};
    std::this_thread::sleep_for(std::chrono::duration<double>(options.seconds));
  }
}

enum class About { kPods, kJobs, kNodes };

void add_top_verb(CLI::App& top, Context& context, int& exit_code, const char* names,
                  const char* help, About about, Make make) {
  auto options = std::make_shared<TopOptions>();
  CLI::App* verb = top.add_subcommand(names, help);
  verb->add_option("name", options->name, "Only this one");
  verb->add_option("-l,--selector", context.globals.selector, "Label selector: a=b,c!=d");
  verb->add_option("--sort-by", options->form.sort_by, "cpu or memory, largest first")
      ->check(CLI::IsMember({"cpu", "memory"}));
  verb->add_flag("--no-headers{false}", options->form.with_header, "Lines only");
  verb->add_flag("-w,--watch", options->watch, "Show it again and again");
  verb->add_option("--interval", options->seconds, "Seconds between two looks")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  if (about == About::kNodes) {
    verb->alias("node")->alias("no");
  } else {
    verb->add_flag("-A,--all-namespaces", context.globals.all_namespaces, "All namespaces");
  }
  if (about == About::kJobs) verb->alias("job");
  if (about == About::kPods) {
    verb->alias("pod")->alias("po");
    verb->add_option("--field-selector", context.globals.field_selector, "metadata.name=x");
    verb->add_flag("--containers", options->form.containers, "Each container by itself");
  }
  verb->callback([options, &context, &exit_code, make] {
    if (auto done = show_top(context, *options, make); !done) exit_code = report(done.error());
  });
}

}  // namespace

void add_top(CLI::App& app, Context& context, int& exit_code) {
  CLI::App* top = app.add_subcommand("top", "Show how much CPU and memory pods and nodes use");
  top->require_subcommand(1);
  top->footer(R"help(
Examples:
  skiff top pods -A --sort-by memory
  skiff top pods web-0 --containers
  skiff top pods -l app=web --watch
  skiff top job mnist                            its replicas, with GPUs and network
  skiff top nodes
)help");
  add_top_verb(*top, context, exit_code, "pods", "What pods use", About::kPods, pods_text);
  add_top_verb(*top, context, exit_code, "jobs", "What training jobs use, by replica", About::kJobs,
               jobs_text);
  add_top_verb(*top, context, exit_code, "nodes", "What nodes use", About::kNodes, nodes_text);
}

}  // namespace skiff::cli
