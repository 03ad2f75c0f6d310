#include "webui/status_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/meta.h"

namespace skiff::webui {
namespace {

// A person reads the newest; the rest is a command away.
constexpr std::size_t kRows = 100;

constexpr std::string_view kHead = R"html(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="refresh" content="3"><title>Skiff</title><style>
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:68rem;padding:0 1rem;
color:#1c2733;background:#fafbfc}
h1{font-size:1.5rem}h2{font-size:1.1rem;margin-top:2rem}
table{border-collapse:collapse;width:100%;background:#fff;border:1px solid #dde3ea}
th,td{text-align:left;padding:.35rem .7rem;border-bottom:1px solid #eef1f5;vertical-align:top}
th{font-weight:600;color:#52606d}.good{color:#17723a}.bad{color:#b3261e}.wait{color:#946200}
code{background:#eef1f5;padding:.1rem .3rem;border-radius:.2rem}.none{color:#7b8794}
</style></head><body><h1>Skiff</h1>
)html";

std::string_view state_of(const json::value& object) {
  const std::string_view phase = json::get_string(object, {"status", "phase"});
  if (!phase.empty()) return phase;
  const json::array& conditions = json::get_array(object, {"status", "conditions"});
  return conditions.empty() ? "New" : json::get_string(conditions.back(), {"type"});
}

std::string_view class_of(std::string_view state) {
  for (const std::string_view good : {"Succeeded", "Complete", "Running", "Ready"}) {
    if (state == good) return "good";
  }
  if (state == "Failed" || state == "NotReady") return "bad";
  return "wait";
}

std::string_view pod_note(const json::value& pod) {
  for (const json::value& status : json::get_array(pod, {"status", "containerStatuses"})) {
    const std::string_view message = json::get_string(status, {"state", "waiting", "message"});
    if (!message.empty()) return message;
    const std::string_view reason = json::get_string(status, {"state", "terminated", "reason"});
    if (!reason.empty() && reason != "Completed") return reason;
  }
  const json::object* scheduled = api::condition(pod, "PodScheduled");
  const json::value* message = scheduled == nullptr ? nullptr : scheduled->if_contains("message");
  return message != nullptr && message->is_string() ? json::view(message->get_string()) : "";
}

std::string_view job_note(const json::value& job) {
  const json::array& conditions = json::get_array(job, {"status", "conditions"});
  return conditions.empty() ? "" : json::get_string(conditions.back(), {"message"});
}

std::string row(const json::value& object, std::string_view state, std::string_view note,
                Time now) {
  const auto created = api::created_at(object);
  return fmt::format(
      "<tr><td>{}</td><td>{}</td><td>{}</td><td class={}>{}</td><td>{}</td><td>{}</td></tr>\n",
      escape_html(api::kind(object)), escape_html(api::ns(object)), escape_html(api::name(object)),
      class_of(state), escape_html(state), created ? age(now - *created) : "", escape_html(note));
}

template <class Note>
std::string section(std::string_view title, std::vector<Object> objects, Time now, Note note) {
  std::string out = fmt::format("<h2>{} ({})</h2>\n", title, objects.size());
  if (objects.empty()) return out + "<p class=none>none</p>\n";
  std::ranges::sort(objects, std::greater{}, [](const Object& o) { return api::revision(*o); });
  out +=
      "<table><tr><th>Kind</th><th>Namespace</th><th>Name</th><th>State</th><th>Age</th><th>Note</"
      "th></tr>\n";
  for (std::size_t i = 0; i < std::min(objects.size(), kRows); ++i) {
    out += row(*objects[i], state_of(*objects[i]), note(*objects[i]), now);
  }
  out += "</table>\n";
  if (objects.size() > kRows)
    out += fmt::format("<p class=none>and {} more</p>\n", objects.size() - kRows);
  return out;
}

std::string nodes_section(const std::vector<Object>& nodes, Time now) {
  std::string out =
      "<h2>Nodes</h2><table><tr><th>Kind</th><th>Namespace</th><th>Name</th><th>State</th>"
      "<th>Age</th><th>Note</th></tr>\n";
  for (const Object& node : nodes) {
    const bool ready = api::condition_true(*node, "Ready");
    out += row(*node, ready ? "Ready" : "NotReady",
               json::serialize(json::get_object(*node, {"status", "allocatable"})), now);
  }
  return out + "</table>\n";
}

}  // namespace

std::string escape_html(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string render(const Snapshot& snapshot, Time now) {
  std::string out(kHead);
  out += fmt::format("<p>{} &middot; {}</p>\n", escape_html(snapshot.version), rfc3339(now));
  out += section("Jobs", snapshot.jobs, now, job_note);
  out += section("Pods", snapshot.pods, now, pod_note);
  out += nodes_section(snapshot.nodes, now);
  out += "<p>Point kubectl here: <code>eval \"$(skiff env)\"</code></p></body></html>\n";
  return out;
}

http::Response status_page(client::Client& client, const std::vector<api::Resource>& job_kinds,
                           const std::string& version, Time now) {
  static const api::Resource kPods{.version = "v1", .plural = "pods", .kind = "Pod"};
  static const api::Resource kNodes{
      .version = "v1", .plural = "nodes", .kind = "Node", .namespaced = false};
  Snapshot snapshot{.version = version};
  if (auto pods = client.list(kPods, "", {})) snapshot.pods = std::move(pods->items);
  if (auto nodes = client.list(kNodes, "", {})) snapshot.nodes = std::move(nodes->items);
  for (const api::Resource& kind : job_kinds) {
    if (auto jobs = client.list(kind, "", {})) {
      snapshot.jobs.insert(snapshot.jobs.end(), jobs->items.begin(), jobs->items.end());
    }
  }
  return {.headers = {{"Content-Type", "text/html; charset=utf-8"},
                      {"Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'"},
                      {"X-Frame-Options", "DENY"},
                      {"X-Content-Type-Options", "nosniff"},
                      {"Cache-Control", "no-store"}},
          .body = render(snapshot, now)};
}

}  // namespace skiff::webui
