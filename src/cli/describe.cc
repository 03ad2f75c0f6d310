#include "cli/describe.h"

#include <fmt/format.h>

#include "api/meta.h"
#include "base/base64.h"
#include "base/yaml.h"
#include "cli/printer.h"
#include "cli/progress_text.h"
#include "cli/time_line.h"

namespace skiff::cli {
namespace {

std::string since(std::string_view stamp, Time now) {
  const auto t = parse_time(stamp);
  return t ? age(now - *t) : "<unknown>";
}

void add_map(std::string& out, std::string_view title, const json::object& map) {
  std::string indent = fmt::format("{:<14}", fmt::format("{}:", title));
  if (map.empty()) out += indent + "<none>\n";
  for (const auto& [key, value] : map) {
    if (std::string_view(key).ends_with("last-applied-configuration")) continue;
    out += fmt::format("{}{}={}\n", indent, std::string_view(key),
                       value.is_string() ? json::view(value.get_string()) : json::serialize(value));
    indent = std::string(14, ' ');
  }
}

void add_yaml(std::string& out, std::string_view title, const json::value& value) {
  out += fmt::format("{}:", title);
  if (!value.is_object() && !value.is_array()) {
    out += " " + yaml::serialize(value);
    return;
  }
  out += "\n";
  const std::string text = yaml::serialize(value);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    out += "  " + text.substr(at, end - at) + "\n";
    at = end == std::string::npos ? text.size() : end + 1;
  }
}

// A secret is told by its size.
json::value hidden(const json::value& data) {
  json::object out;
  if (!data.is_object()) return out;
  for (const auto& [key, value] : data.get_object()) {
    const std::string_view text =
        value.is_string() ? json::view(value.get_string()) : std::string_view();
    const auto decoded = base64::decode(text);
    out[key] = fmt::format("{} bytes", decoded ? decoded->size() : text.size());
  }
  return out;
}

// Whatever the kind has: spec, data, rules, subjects, and what of the status is not told below.
void add_fields(std::string& out, const json::value& object) {
  const bool secret = api::kind(object) == "Secret";
  for (const auto& [key, value] : object.as_object()) {
    const std::string_view name = key;
    if (name == "apiVersion" || name == "kind" || name == "metadata" || name == "status") continue;
    std::string title(name);
    if (title[0] >= 'a' && title[0] <= 'z') title[0] = static_cast<char>(title[0] - 'a' + 'A');
    const bool hide = secret && (name == "data" || name == "stringData");
    add_yaml(out, title, hide ? hidden(value) : value);
  }
  json::object status = json::get_object(object, {"status"});
  for (const char* told : {"conditions", "replicaStatuses", "progress"}) status.erase(told);
  if (!status.empty()) add_yaml(out, "Status", status);
}

void describe_conditions(std::string& out, const json::value& object, Time now) {
  const json::array& conditions = json::get_array(object, {"status", "conditions"});
  if (conditions.empty()) return;
  std::vector<std::vector<std::string>> rows = {{"  TYPE", "STATUS", "SINCE", "REASON", "MESSAGE"}};
  for (const json::value& c : conditions) {
    rows.push_back({"  " + std::string(json::get_string(c, {"type"})),
                    std::string(json::get_string(c, {"status"})),
                    since(json::get_string(c, {"lastTransitionTime"}), now),
                    std::string(json::get_string(c, {"reason"})),
                    std::string(json::get_string(c, {"message"}))});
  }
  out += "Conditions:\n" + columns(rows);
}

void add_replicas(std::string& out, const json::value& object) {
  const json::object& statuses = json::get_object(object, {"status", "replicaStatuses"});
  if (statuses.empty()) return;
  std::vector<std::vector<std::string>> rows = {{"  ROLE", "ACTIVE", "SUCCEEDED", "FAILED"}};
  for (const auto& [role, counts] : statuses) {
    const auto n = [&](std::string_view field) {
      return std::to_string(json::get_int(counts, {field}).value_or(0));
    };
    rows.push_back(
        {"  " + std::string(std::string_view(role)), n("active"), n("succeeded"), n("failed")});
  }
  out += "Replicas:\n" + columns(rows);
}

std::string container_state(const json::value& status) {
  if (json::find(status, {"state", "running"}) != nullptr) return "Running";
  if (const auto code = json::get_int(status, {"state", "terminated", "exitCode"})) {
    return fmt::format("{} (exit code {})",
                       json::get_string(status, {"state", "terminated", "reason"}), *code);
  }
  const std::string_view reason =
      json::get_string(status, {"state", "waiting", "reason"}, "Waiting");
  const std::string_view message = json::get_string(status, {"state", "waiting", "message"});
  return message.empty() ? std::string(reason) : fmt::format("{}: {}", reason, message);
}

void add_containers(std::string& out, const json::value& pod) {
  const json::array& statuses = json::get_array(pod, {"status", "containerStatuses"});
  out += "Containers:\n";
  for (const json::value& container : json::get_array(pod, {"spec", "containers"})) {
    const std::string_view name = json::get_string(container, {"name"});
    out += fmt::format("  {}:\n    Image:    {}\n", name, json::get_string(container, {"image"}));
    std::string command;
    for (const char* list : {"command", "args"}) {
      for (const std::string& word : json::strings(json::get_array(container, {list}))) {
        command += (command.empty() ? "" : " ") + word;
      }
    }
    if (!command.empty()) out += fmt::format("    Command:  {}\n", command);
    const json::object& resources = json::get_object(container, {"resources"});
    if (!resources.empty()) out += fmt::format("    Asks:     {}\n", json::serialize(resources));
    for (const json::value& status : statuses) {
      if (json::get_string(status, {"name"}) != name) continue;
      out += fmt::format("    State:    {}\n    Restarts: {}\n", container_state(status),
                         json::get_int(status, {"restartCount"}).value_or(0));
    }
  }
}

// What the node last heard of a training pod's progress.
std::string pod_progress(const json::value& pod, Time now) {
  const auto told = json::parse(
      json::get_string(pod, {"metadata", "annotations", "training.skiff.dev/progress"}));
  if (!told || !told->is_object() || told->get_object().empty()) return "-";
  const json::value view = {{"status", {{"progress", told->get_object().begin()->value()}}}};
  std::string out = progress_text(view, now);
  return out.empty() ? "-" : out;
}

void add_pods(std::string& out, const std::vector<Object>& pods, Time now) {
  if (pods.empty()) return;
  std::vector<std::vector<std::string>> rows = {
      {"  POD", "PHASE", "STATE", "NODE", "IP", "AGE", "PROGRESS"}};
  for (const Object& pod : pods) {
    const json::array& statuses = json::get_array(*pod, {"status", "containerStatuses"});
    rows.push_back({"  " + std::string(api::name(*pod)),
                    std::string(json::get_string(*pod, {"status", "phase"}, "Pending")),
                    statuses.empty() ? "-" : container_state(statuses.front()),
                    std::string(json::get_string(*pod, {"spec", "nodeName"}, "-")),
                    std::string(json::get_string(*pod, {"status", "podIP"}, "-")),
                    since(json::get_string(*pod, {"metadata", "creationTimestamp"}), now),
                    pod_progress(*pod, now)});
  }
  out += "Pods:\n" + columns(rows);
}

void add_events(std::string& out, const std::vector<Object>& events, Time now) {
  if (events.empty()) {
    out += "Events:       <none>\n";
    return;
  }
  std::vector<std::vector<std::string>> rows = {{"  AGE", "TYPE", "REASON", "OBJECT", "MESSAGE"}};
  for (const Object& event : events) {
    const auto count = json::get_int(*event, {"count"}).value_or(1);
    std::string message(json::get_string(*event, {"message"}));
    if (count > 1) message += fmt::format(" (x{})", count);
    rows.push_back({"  " + since(json::get_string(*event, {"lastTimestamp"}), now),
                    std::string(json::get_string(*event, {"type"})),
                    std::string(json::get_string(*event, {"reason"})),
                    fmt::format("{}/{}", json::get_string(*event, {"involvedObject", "kind"}),
                                json::get_string(*event, {"involvedObject", "name"})),
                    std::move(message)});
  }
  out += "Events:\n" + columns(rows);
}

}  // namespace

std::string describe_text(const json::value& object, const std::vector<Object>& pods,
                          const std::vector<Object>& events, Time now) {
  std::string out;
  out += fmt::format("Name:         {}\n", api::name(object));
  if (!api::ns(object).empty()) out += fmt::format("Namespace:    {}\n", api::ns(object));
  out += fmt::format("Kind:         {} ({})\n", api::kind(object), api::api_version(object));
  out += fmt::format("Age:          {}\n",
                     since(json::get_string(object, {"metadata", "creationTimestamp"}), now));
  add_map(out, "Labels", json::get_object(object, {"metadata", "labels"}));
  add_map(out, "Annotations", json::get_object(object, {"metadata", "annotations"}));
  if (const json::object* owner = api::controller_of(object)) {
    const json::value view(*owner);
    out += fmt::format("Controlled by: {}/{}\n", api::kind(view), json::get_string(view, {"name"}));
  }
  if (api::kind(object) == "Pod") {
    out += fmt::format("Node:         {}\nPhase:        {}\nIP:           {}\n",
                       json::get_string(object, {"spec", "nodeName"}, "<none>"),
                       json::get_string(object, {"status", "phase"}, "Pending"),
                       json::get_string(object, {"status", "podIP"}, "<none>"));
    add_containers(out, object);
  } else {
    add_fields(out, object);
  }
  describe_conditions(out, object, now);
  add_replicas(out, object);
  if (api::api_version(object).starts_with("kubeflow.org/")) {
    const std::string progress = progress_text(object, now);
    if (!progress.empty()) out += fmt::format("Progress:     {}\n", progress);
    out += time_line_text(object, pods, events, now);
  } else if (api::kind(object) == "TrainJob") {
    const std::string progress = progress_text(object, now);
    if (!progress.empty()) out += fmt::format("Progress:     {}\n", progress);
  }
  add_pods(out, pods, now);
  add_events(out, events, now);
  return printable(out);
}

}  // namespace skiff::cli
