#include "cli/context.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>

#include "api/meta.h"
#include "base/strings.h"
#include "cli/job_pods.h"
#include "cli/printer.h"

namespace skiff::cli {

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

Result<client::Access> find_access(const Globals& globals) {
  const std::string own = globals.data + "/kubeconfig";
  std::string path = globals.kubeconfig;
  if (path.empty() && access(own.c_str(), R_OK) == 0) path = own;
  if (path.empty()) path = variable("KUBECONFIG");
  if (!path.empty()) return client::load_kubeconfig(path, globals.kube_context);
  const std::string host = variable("KUBERNETES_SERVICE_HOST");
  if (!host.empty()) return client::in_cluster(host, variable("KUBERNETES_SERVICE_PORT"));
  return fail(Code::kServiceUnavailable,
              fmt::format("there is no Skiff at {} yet; start it with: skiff up -d", globals.data));
}

}  // namespace

Result<Connection*> Context::connect() {
  if (connection_) return connection_.get();
  SKIFF_ASSIGN(client::Access access, find_access(globals));
  if (!globals.as.empty()) access.as = globals.as;
  if (!globals.as_groups.empty()) access.as_groups = globals.as_groups;
  if (access.as.empty() && !access.as_groups.empty()) {
    return fail(Code::kBadRequest, "--as-group needs --as: a group alone is nobody");
  }
  connection_ = open_connection(std::move(access));
  return connection_.get();
}

std::string Context::ns() {
  if (!globals.ns.empty()) return globals.ns;
  return connection_ ? connection_->default_namespace() : "default";
}

Result<api::Kind> find_kind(const std::vector<api::Kind>& kinds, std::string_view word) {
  const std::string name = lower(word);
  for (const api::Kind& kind : kinds) {
    const api::Resource& r = kind.resource;
    const std::string full = fmt::format("{}.{}.{}", r.plural, r.version, r.group);
    if (name == r.plural || name == kind.singular || name == lower(r.kind) || name == r.key() ||
        name == full || (!r.group.empty() && name == kind.singular + "." + r.group) ||
        std::ranges::find(kind.short_names, name) != kind.short_names.end()) {
      return kind;
    }
  }
  std::vector<std::string> like;
  for (const api::Kind& kind : kinds) {
    if (!name.empty() && kind.resource.plural.starts_with(name.substr(0, 2))) {
      like.push_back(kind.resource.plural);
    }
  }
  std::string message = fmt::format("the server doesn't have a resource type \"{}\"", word);
  if (!like.empty()) message += fmt::format("; did you mean {}?", join(like, " or "));
  return fail(Code::kNotFound, message + " (all: skiff api-resources)");
}

Result<std::vector<Target>> parse_targets(const std::vector<std::string>& words) {
  std::vector<Target> out;
  if (words.empty())
    return fail(Code::kBadRequest, "name what you mean: KIND, KIND NAME or KIND/NAME");
  if (words.front().contains('/')) {
    for (const std::string& word : words) {
      const std::size_t slash = word.find('/');
      if (slash == std::string::npos || slash == 0 || slash + 1 == word.size()) {
        return fail(Code::kBadRequest, fmt::format("\"{}\": write KIND/NAME", word));
      }
      out.push_back({word.substr(0, slash), word.substr(slash + 1)});
    }
    return out;
  }
  for (const std::string_view kind : split(words.front(), ',')) {
    if (words.size() == 1) out.push_back({std::string(kind), ""});
    for (std::size_t i = 1; i < words.size(); ++i) out.push_back({std::string(kind), words[i]});
  }
  return out;
}

Result<std::vector<Object>> pods_of_job(Connection& server, std::string_view ns,
                                        std::string_view job, std::string_view kind) {
  SKIFF_ASSIGN(const api::Kind pods, server.kind("pods"));
  const auto labelled = [&](std::string_view label) -> Result<std::vector<Object>> {
    SKIFF_ASSIGN(client::List list,
                 server.client().list(pods.resource, ns,
                                      {.label_selector = fmt::format("{}={}", label, job)}));
    return std::move(list.items);
  };
  SKIFF_ASSIGN(std::vector<Object> named, labelled("training.kubeflow.org/job-name"));
  // A TrainJob's pods belong to the JobSet of its name.
  SKIFF_ASSIGN(std::vector<Object> in_set, labelled("jobset.sigs.k8s.io/jobset-name"));
  return job_pods(std::move(named), std::move(in_set), kind, job);
}

Result<std::vector<Object>> events_of(Connection& server, std::string_view ns,
                                      const std::vector<Object>& objects) {
  std::set<std::string, std::less<>> uids;
  for (const Object& object : objects) uids.emplace(api::uid(*object));
  SKIFF_ASSIGN(const api::Kind events, server.kind("events"));
  SKIFF_ASSIGN(client::List list, server.client().list(events.resource, ns, {}));
  std::erase_if(list.items, [&](const Object& event) {
    return !uids.contains(json::get_string(*event, {"involvedObject", "uid"}));
  });
  std::ranges::sort(list.items, {}, [](const Object& event) {
    return std::pair(std::string(json::get_string(*event, {"lastTimestamp"})),
                     api::revision(*event));
  });
  return std::move(list.items);
}

int report(const Error& error) {
  const bool colour = isatty(STDERR_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr;
  fmt::print(stderr, "{} {}\n", paint("error:", Colour::kRed, colour), printable(error.message));
  return 1;
}

}  // namespace skiff::cli
