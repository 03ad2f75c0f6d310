#include "api/events/event_view.h"

#include <array>
#include <utility>

#include "api/core/event.h"
#include "api/meta.h"
#include "schema/causes.h"

namespace skiff::api {
namespace {

// What each field is called here and in core/v1. Only the names differ.
constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kNames{{
    {"regarding", "involvedObject"},
    {"note", "message"},
    {"reportingController", "reportingComponent"},
    {"deprecatedSource", "source"},
    {"deprecatedFirstTimestamp", "firstTimestamp"},
    {"deprecatedLastTimestamp", "lastTimestamp"},
    {"deprecatedCount", "count"},
}};

void rename(json::object& o, std::string_view from, std::string_view to) {
  json::value* member = o.if_contains(from);
  if (member == nullptr) return;
  json::value moved = std::move(*member);
  o.erase(from);
  o[to] = std::move(moved);
}

void to_storage(json::value& object) {
  json::object* o = object.if_object();
  if (o == nullptr) return;
  for (const auto& [here, there] : kNames) rename(*o, here, there);
}

void from_storage(json::value& object) {
  json::object* o = object.if_object();
  if (o == nullptr) return;
  for (const auto& [here, there] : kNames) rename(*o, there, here);
  // What core writes even where it is empty, and this group does not.
  for (const std::string_view field : {"reportingController", "reportingInstance"}) {
    const json::value* member = o->if_contains(field);
    if (member != nullptr && *member == "") o->erase(field);
  }
}

json::array event_view_cells(const json::value& object, std::int64_t now_s) {
  json::value kept = object;
  to_storage(kept);
  return event_cells(kept, now_s);
}

void check_series(const json::value& event, std::vector<Cause>& out) {
  const json::value* series = json::find(event, {"series"});
  if (series == nullptr || series->is_null()) return;
  if (json::get_int(*series, {"count"}).value_or(0) < 2) {
    out.push_back(schema::invalid("series.count", "", "should be at least 2"));
  }
  if (!time_at(*series, {"lastObservedTime"})) {
    out.push_back(schema::required("series.lastObservedTime"));
  }
}

// What belongs to the old form only and may not come this way.
void check_unset(const json::value& event, std::vector<Cause>& out) {
  for (const std::string_view field : {"firstTimestamp", "lastTimestamp"}) {
    if (time_at(event, {field})) {
      out.push_back(schema::invalid(std::string(field), "", "needs to be unset"));
    }
  }
  if (json::get_int(event, {"count"}).value_or(0) != 0) {
    out.push_back(schema::invalid("count", "", "needs to be unset"));
  }
  if (!json::get_string(event, {"source", "component"}).empty() ||
      !json::get_string(event, {"source", "host"}).empty()) {
    out.push_back(schema::invalid("source", "", "needs to be unset"));
  }
}

std::vector<Cause> validate_create(const json::value& event, std::vector<Cause> out) {
  check_series(event, out);
  if (!time_at(event, {"eventTime"})) out.push_back(schema::required("eventTime"));
  const std::string_view type = json::get_string(event, {"type"});
  if (type != "Normal" && type != "Warning") {
    out.push_back(schema::invalid("type", "", "has invalid value: " + std::string(type)));
  }
  check_unset(event, out);
  return out;
}

bool same(const json::value& a, const json::value& b, std::string_view field) {
  const json::value* one = json::find(a, {field});
  const json::value* two = json::find(b, {field});
  if (one == nullptr || two == nullptr) return one == two;
  return *one == *two;
}

// An event tells what was; only its series goes on.
std::vector<Cause> validate_event_view(const json::value& event, const Admission& context) {
  std::vector<Cause> out = validate_event(event, "reportingController");
  if (context.old == nullptr) return validate_create(event, std::move(out));
  if (!same(event, *context.old, "series")) check_series(event, out);
  for (const std::string_view field :
       {"involvedObject", "reason", "message", "source", "firstTimestamp", "lastTimestamp", "count",
        "reason", "type", "eventTime", "action", "related", "reportingComponent",
        "reportingInstance"}) {
    if (same(event, *context.old, field)) continue;
    const json::value* now = json::find(event, {field});
    const std::string_view called = field == "reportingComponent" ? "reportingController" : field;
    out.push_back(schema::invalid(std::string(called), now == nullptr ? json::value("") : *now,
                                  "field is immutable"));
  }
  return out;
}

}  // namespace

std::vector<Kind> events_kinds() {
  Kind event = event_kind();
  event.resource = {"events.k8s.io", "v1", "events", "Event", true};
  event.schema = "io.k8s.api.events.v1.Event";
  event.selectable = {"reason",
                      "regarding.kind",
                      "regarding.namespace",
                      "regarding.name",
                      "regarding.uid",
                      "regarding.apiVersion",
                      "regarding.resourceVersion",
                      "regarding.fieldPath",
                      "reportingController",
                      "type"};
  event.kept_in_group = "";
  event.to_storage = to_storage;
  event.from_storage = from_storage;
  event.validate = validate_event_view;
  event.field_text = nullptr;
  event.cells = event_view_cells;
  return {event};
}

}  // namespace skiff::api
