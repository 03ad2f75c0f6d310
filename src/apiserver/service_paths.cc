// The paths that are about the server itself: health, version, metrics.
#include <fmt/format.h>

#include <algorithm>

#include "apiserver/server.h"
#include "apiserver/status.h"
#include "base/strings.h"

namespace skiff::apiserver {
namespace {

// Methods are the client's words; those that HTTP does not know are one to us.
std::string method_word(std::string_view method) {
  constexpr std::string_view kKnown[] = {"GET",   "HEAD",   "POST",   "PUT",
                                         "PATCH", "DELETE", "OPTIONS"};
  return std::ranges::count(kKnown, method) > 0 ? lower(method) : "other";
}

}  // namespace

http::Response Server::health(const http::Url& url) const {
  const std::string& name = url.segments[0];
  const std::string refusing = store_.stats().refusing;
  struct Check {
    std::string_view name = {};
    std::string failure = {};
  };
  // A full disk does not get better by a restart: the process lives, but is not ready.
  const Check checks[] = {{"ping", ""}, {"store", name == "livez" ? "" : refusing}};
  if (url.segments.size() > 1) {
    for (const Check& check : checks) {
      // Monitors of clusters ask for the store by its usual name.
      const bool asked =
          url.segments[1] == check.name || (check.name == "store" && url.segments[1] == "etcd");
      if (!asked || url.segments.size() > 2) continue;
      if (check.failure.empty()) return text_response(200, "ok");
      return text_response(500, fmt::format("internal server error: {}\n", check.failure));
    }
    return text_response(404, "404 page not found\n");
  }
  bool fine = true;
  std::string body;
  for (const Check& check : checks) {
    const bool excluded = std::ranges::count(url.query, std::pair<std::string, std::string>(
                                                            "exclude", check.name)) > 0;
    const bool failed = !check.failure.empty() && !excluded;
    fine = fine && !failed;
    body += failed     ? fmt::format("[-]{} failed: {}\n", check.name, check.failure)
            : excluded ? fmt::format("[+]{} excluded: ok\n", check.name)
                       : fmt::format("[+]{} ok\n", check.name);
  }
  if (fine && !url.flag("verbose")) return text_response(200, "ok");
  body += fmt::format("{} check {}\n", name, fine ? "passed" : "failed");
  return text_response(fine ? 200 : 500, std::move(body));
}

http::Response Server::version() const {
  std::string_view number = options_.version;
  if (number.starts_with('v')) number.remove_prefix(1);
  const auto parts = split(number, '.');
  const json::string major(parts[0]);
  const json::string minor(parts.size() > 1 ? parts[1] : std::string_view("0"));
  return json_response(200, json::serialize(json::object{{"major", major},
                                                         {"minor", minor},
                                                         {"emulationMajor", major},
                                                         {"emulationMinor", minor},
                                                         {"minCompatibilityMajor", major},
                                                         {"minCompatibilityMinor", minor},
                                                         {"gitVersion", options_.version},
                                                         {"gitCommit", ""},
                                                         {"gitTreeState", "clean"},
                                                         {"buildDate", "1970-01-01T00:00:00Z"},
                                                         {"goVersion", "none"},
                                                         {"compiler", "clang"},
                                                         {"platform", "linux/amd64"}}));
}

void Server::count(const http::Request& request, const Route& route, int status) {
  const std::string verb =
      route.resource() ? std::string(verb_name(route.verb)) : method_word(request.method);
  const std::lock_guard guard(counts_lock_);
  ++counts_[{verb, status}];
}

http::Response Server::metrics() const {
  std::string out =
      "# HELP apiserver_request_total Requests answered, by verb and HTTP code.\n"
      "# TYPE apiserver_request_total counter\n";
  {
    const std::lock_guard guard(counts_lock_);
    for (const auto& [key, count] : counts_) {
      out += fmt::format("apiserver_request_total{{verb=\"{}\",code=\"{}\"}} {}\n", key.first,
                         key.second, count);
    }
  }
  const store::Store::Stats stats = store_.stats();
  const auto add = [&](std::string_view name, std::string_view type, std::string_view help,
                       std::uint64_t value) {
    out += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n{0} {3}\n", name, help, type, value);
  };
  add("skiff_watches", "gauge", "Watch streams open now.", watches_.count());
  add("skiff_store_objects", "gauge", "Objects in the store.", stats.objects);
  add("skiff_store_revision", "counter", "Newest revision.", store_.revision());
  add("skiff_store_commits_total", "counter", "Transactions written.", stats.commits);
  add("skiff_store_syncs_total", "counter", "Times the disk was made to sync.", stats.syncs);
  add("skiff_store_waiting", "gauge", "Mutations not yet on disk.", stats.waiting);
  if (options_.metrics) out += options_.metrics();
  http::Response response = text_response(200, std::move(out));
  response.headers[0].second = "text/plain; version=0.0.4; charset=utf-8";
  return response;
}

}  // namespace skiff::apiserver
