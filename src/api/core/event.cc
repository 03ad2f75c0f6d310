#include "api/core/event.h"

#include <fmt/format.h>

#include "api/cells.h"
#include "api/meta.h"
#include "base/names.h"
#include "base/strings.h"
#include "schema/causes.h"

namespace skiff::api {
namespace {

// kubectl's age of a time, <unknown> where there is none.
std::string since(const json::value& event, std::initializer_list<std::string_view> path,
                  std::int64_t now_s) {
  return age_cell(time_at(event, path), now_s);
}

std::string source_cell(const json::value& event) {
  std::string_view component = json::get_string(event, {"source", "component"});
  std::string_view host = json::get_string(event, {"source", "host"});
  if (component.empty()) component = json::get_string(event, {"reportingComponent"});
  if (host.empty()) host = json::get_string(event, {"reportingInstance"});
  return host.empty() ? std::string(component) : fmt::format("{}, {}", component, host);
}

std::string target_cell(const json::value& event) {
  const std::string kind = lower(json::get_string(event, {"involvedObject", "kind"}));
  const std::string_view name = json::get_string(event, {"involvedObject", "name"});
  return name.empty() ? kind : fmt::format("{}/{}", kind, name);
}

// As long as events have no eventTime, they are of the old form.
bool has_time(const json::value& event) { return time_at(event, {"eventTime"}).has_value(); }

void check_length(const json::value& event, std::string_view field, std::size_t most, bool needed,
                  std::vector<Cause>& out) {
  const std::string_view text = json::get_string(event, {field});
  if (text.empty() && needed) out.push_back(schema::required(std::string(field)));
  if (text.size() > most) {
    out.push_back(schema::invalid(std::string(field), "",
                                  fmt::format("can have at most {} characters", most)));
  }
}

std::vector<Cause> validate_core_event(const json::value& event, const Admission&) {
  return validate_event(event, "reportingComponent");
}

// Where the component is not told, the controller is.
std::optional<std::string> event_field_text(const json::value& event, std::string_view path) {
  if (path != "source") return std::nullopt;
  const std::string_view component = json::get_string(event, {"source", "component"});
  return std::string(component.empty() ? json::get_string(event, {"reportingComponent"})
                                       : component);
}

}  // namespace

json::array event_cells(const json::value& event, std::int64_t now_s) {
  const bool series = json::find(event, {"series"}) != nullptr;
  const std::string first = time_at(event, {"firstTimestamp"})
                                ? since(event, {"firstTimestamp"}, now_s)
                                : since(event, {"eventTime"}, now_s);
  std::string last = first;
  if (time_at(event, {"lastTimestamp"})) last = since(event, {"lastTimestamp"}, now_s);
  if (series) last = since(event, {"series", "lastObservedTime"}, now_s);
  const std::int64_t count = json::get_int(event, {"count"}).value_or(0);
  const std::int64_t seen = json::get_int(event, {"series", "count"}).value_or(0);
  return {json::string(last),
          json::string(json::get_string(event, {"type"})),
          json::string(json::get_string(event, {"reason"})),
          json::string(target_cell(event)),
          json::string(json::get_string(event, {"involvedObject", "fieldPath"})),
          json::string(source_cell(event)),
          json::string(trim(json::get_string(event, {"message"}))),
          json::string(first),
          series       ? seen
          : count == 0 ? 1
                       : count,
          json::string(name(event))};
}

std::vector<Cause> validate_event(const json::value& event, std::string_view controller_field) {
  constexpr std::string_view kWhy = "does not match event.namespace";
  std::vector<Cause> out;
  const std::string_view about = json::get_string(event, {"involvedObject", "namespace"});
  if (!has_time(event)) {
    // An event about a cluster-scoped object lives in `default`.
    const bool fits =
        about.empty() ? ns(event).empty() || ns(event) == "default" : about == ns(event);
    if (!fits)
      out.push_back(schema::invalid("involvedObject.namespace", json::string(about), kWhy));
    return out;
  }
  if (about.empty() && ns(event) != "default" && ns(event) != "kube-system") {
    out.push_back(schema::invalid("involvedObject.namespace", json::string(about), kWhy));
  }
  const std::string_view controller = json::get_string(event, {"reportingComponent"});
  if (controller.empty()) out.push_back(schema::required(std::string(controller_field)));
  for (const std::string& bad : names::check_label_key(controller)) {
    out.push_back(schema::invalid(std::string(controller_field), json::string(controller), bad));
  }
  check_length(event, "reportingInstance", 128, true, out);
  check_length(event, "action", 128, true, out);
  check_length(event, "reason", 128, true, out);
  check_length(event, "message", 1024, false, out);
  return out;
}

Kind event_kind() {
  return {.resource = {"", "v1", "events", "Event", true},
          .singular = "event",
          .short_names = {"ev"},
          .has_generation = false,
          .schema = "io.k8s.api.core.v1.Event",
          .columns = {{"Last Seen", "string"},
                      {"Type", "string"},
                      {"Reason", "string"},
                      {"Object", "string"},
                      {"Subobject", "string", "", 1},
                      {"Source", "string", "", 1},
                      {"Message", "string"},
                      {"First Seen", "string", "", 1},
                      {"Count", "string", "", 1},
                      {"Name", "string", "", 1}},
          .selectable = {"involvedObject.kind", "involvedObject.namespace", "involvedObject.name",
                         "involvedObject.uid", "involvedObject.apiVersion",
                         "involvedObject.resourceVersion", "involvedObject.fieldPath", "reason",
                         "reportingComponent", "source", "type"},
          .lazy = true,
          .validate = validate_core_event,
          .field_text = event_field_text,
          .cells = event_cells};
}

}  // namespace skiff::api
