#include "api/core/event.h"

#include <fmt/format.h>

#include "api/cells.h"
#include "api/meta.h"
#include "base/strings.h"
#include "schema/causes.h"

namespace skiff::api {
namespace {

// The first of the times that the event has; old and new writers of events fill different ones.
std::optional<Time> first_time(
    const json::value& event,
    std::initializer_list<std::initializer_list<std::string_view>> paths) {
  for (const auto& path : paths) {
    if (const std::optional<Time> t = parse_time(json::get_string(event, path))) return t;
  }
  return created_at(event);
}

std::string source_cell(const json::value& event) {
  std::string_view component = json::get_string(event, {"source", "component"});
  std::string_view host = json::get_string(event, {"source", "host"});
  if (component.empty()) component = json::get_string(event, {"reportingComponent"});
  if (host.empty()) host = json::get_string(event, {"reportingInstance"});
  return host.empty() ? std::string(component) : fmt::format("{}, {}", component, host);
}

json::array cells(const json::value& event, std::int64_t now_s) {
  const std::optional<Time> last =
      first_time(event, {{"series", "lastObservedTime"}, {"lastTimestamp"}, {"eventTime"}});
  const std::optional<Time> first = first_time(event, {{"firstTimestamp"}, {"eventTime"}});
  const std::string object =
      fmt::format("{}/{}", lower(json::get_string(event, {"involvedObject", "kind"})),
                  json::get_string(event, {"involvedObject", "name"}));
  const std::int64_t count = json::get_int(event, {"series", "count"})
                                 .value_or(json::get_int(event, {"count"}).value_or(1));
  return {json::string(age_cell(last, now_s)),
          json::string(json::get_string(event, {"type"})),
          json::string(json::get_string(event, {"reason"})),
          json::string(object),
          json::string(json::get_string(event, {"involvedObject", "fieldPath"})),
          json::string(source_cell(event)),
          json::string(trim(json::get_string(event, {"message"}))),
          json::string(age_cell(first, now_s)),
          std::max<std::int64_t>(count, 1),
          json::string(name(event))};
}

std::vector<Cause> validate(const json::value& event, const Admission&) {
  const std::string_view about = json::get_string(event, {"involvedObject", "namespace"});
  // An event about a cluster-scoped object lives in `default`.
  if (about == ns(event) || (about.empty() && ns(event) == "default")) return {};
  return {schema::invalid("involvedObject.namespace", json::string(about),
                          "does not match event.namespace")};
}

}  // namespace

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
                      {"Count", "integer", "", 1},
                      {"Name", "string", "", 1}},
          .selectable = {"involvedObject.kind", "involvedObject.namespace", "involvedObject.name",
                         "involvedObject.uid", "involvedObject.apiVersion",
                         "involvedObject.resourceVersion", "involvedObject.fieldPath", "reason",
                         "reportingComponent", "source", "type"},
          .lazy = true,
          .validate = validate,
          .cells = cells};
}

}  // namespace skiff::api
