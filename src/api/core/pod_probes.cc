// Probes and lifecycle handlers.
#include <fmt/format.h>

#include "api/core/pod_checks.h"

namespace skiff::api {
namespace {

using schema::child;

void check_probe_port(const json::value* port, const std::string& path, Rules& rules) {
  if (port != nullptr && port->is_string()) {
    const std::string_view name = json::view(port->get_string());
    rules.called(path, name, names::check_port_name(name));
  } else {
    rules.port(path, port == nullptr ? 0 : json::get_int(*port, {}).value_or(0));
  }
}

void check_http(const json::value& get, const std::string& path, Rules& rules) {
  check_probe_port(present(get, {"port"}), child(path, "port"), rules);
  rules.maybe_one_of(get, path, "scheme", {"HTTP", "HTTPS"});
  for (const json::value& header : json::get_array(get, {"httpHeaders"})) {
    const std::string_view name = json::get_string(header, {"name"});
    const bool good = !name.empty() && name.find_first_not_of(
                                           "-0123456789abcdefghijklmnopqrstuvwxyz"
                                           "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == name.npos;
    if (good) continue;
    rules.say(schema::invalid(child(path, "httpHeaders"), json::string(name),
                              "a valid HTTP header must consist of alphanumeric characters or '-' "
                              "(e.g. 'X-Header-Name', regex used for validation is "
                              "'[-A-Za-z0-9]+')"));
  }
}

void check_sleep(const json::value& sleep, const PodFacts& facts, const std::string& path,
                 Rules& rules) {
  const std::int64_t seconds = json::get_int(sleep, {"seconds"}).value_or(0);
  if (seconds >= 0 && seconds <= facts.grace_s) return;
  rules.say(schema::invalid(
      path, seconds,
      fmt::format("must be non-negative and less than terminationGracePeriodSeconds ({}).",
                  facts.grace_s)));
}

void check_handler(const json::value& handler, const PodFacts& facts, const std::string& path,
                   Rules& rules) {
  int found = 0;
  for (const std::string_view kind : {"exec", "httpGet", "tcpSocket", "grpc", "sleep"}) {
    const json::value* action = present(handler, {kind});
    if (action == nullptr) continue;
    const std::string at = child(path, kind);
    if (found++ > 0) {
      rules.say(schema::forbidden(at, "may not specify more than 1 handler type"));
    } else if (kind == "exec") {
      if (json::get_array(*action, {"command"}).empty()) {
        rules.say(schema::required(child(at, "command")));
      }
    } else if (kind == "httpGet") {
      check_http(*action, at, rules);
    } else if (kind == "sleep") {
      check_sleep(*action, facts, at, rules);
    } else {
      check_probe_port(present(*action, {"port"}), child(at, "port"), rules);
    }
  }
  if (found == 0) rules.say(schema::required(path, "must specify a handler type"));
}

void check_probe(const json::value& container, std::string_view name, const PodFacts& facts,
                 const std::string& owner, Rules& rules) {
  const json::value* probe = present(container, {name});
  if (probe == nullptr) return;
  const std::string path = child(owner, name);
  check_handler(*probe, facts, path, rules);
  for (const std::string_view field : {"initialDelaySeconds", "timeoutSeconds", "periodSeconds",
                                       "successThreshold", "failureThreshold"}) {
    rules.not_negative(*probe, path, field);
  }
  const std::string grace_path = child(path, "terminationGracePeriodSeconds");
  const auto grace = json::get_int(*probe, {"terminationGracePeriodSeconds"});
  if (grace && *grace <= 0) {
    rules.say(schema::invalid(grace_path, *grace, "must be greater than 0"));
  }
  if (name == "readinessProbe") {
    if (grace) {
      rules.say(schema::invalid(grace_path, *grace, "must not be set for readinessProbes"));
    }
  } else if (const auto n = json::get_int(*probe, {"successThreshold"}); n.value_or(1) != 1) {
    rules.say(schema::invalid(child(path, "successThreshold"), *n, "must be 1"));
  }
}

}  // namespace

void check_probes(const json::value& container, const std::string& path, const PodFacts& facts,
                  Rules& rules) {
  for (const std::string_view hook : {"postStart", "preStop"}) {
    if (const json::value* handler = present(container, {"lifecycle", hook})) {
      check_handler(*handler, facts, child(child(path, "lifecycle"), hook), rules);
    }
  }
  for (const std::string_view probe : {"livenessProbe", "readinessProbe", "startupProbe"}) {
    check_probe(container, probe, facts, path, rules);
  }
}

}  // namespace skiff::api
