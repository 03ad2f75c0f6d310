// A small cluster for tests: a server in memory, controllers on it, and a node that obeys.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/meta.h"
#include "base/check.h"
#include "base/json.h"
#include "control/runtime.h"
#include "control/testing/memory_server.h"
#include "env/sim/clock.h"
#include "features/workloads/pods.h"

namespace skiff::workloads::testing {

inline constexpr std::string_view kNamespace = "team";

inline json::value must_parse(std::string_view text) {
  Result<json::value> parsed = json::parse(text);
  SKIFF_CHECK(parsed.has_value(), parsed ? "" : parsed.error().message);
  return *std::move(parsed);
}

inline void must_write(client::Client& client, const client::Write& write) {
  const Result<json::value> result = client.write(write);
  ASSERT_TRUE(result.has_value()) << result.error().message;
}

inline void create(client::Client& client, const api::Resource& resource, json::value body) {
  must_write(client,
             {.resource = resource, .ns = std::string(kNamespace), .body = std::move(body)});
}

inline void change(client::Client& client, const api::Resource& resource, std::string_view name,
                   json::value body, std::string_view subresource = {}) {
  must_write(client, {.verb = client::Verb::kMergePatch,
                      .resource = resource,
                      .ns = std::string(kNamespace),
                      .name = std::string(name),
                      .subresource = std::string(subresource),
                      .body = std::move(body)});
}

inline void remove(client::Client& client, const api::Resource& resource, std::string_view name) {
  must_write(client, {.verb = client::Verb::kDelete,
                      .resource = resource,
                      .ns = std::string(kNamespace),
                      .name = std::string(name),
                      .body = json::object{}});
}

inline std::vector<Object> all(client::Client& client, const api::Resource& resource) {
  return client.list(resource, {}, {})->items;
}

inline json::value ready_status(Time now) {
  return {{"status",
           {{"phase", "Running"},
            {"conditions",
             json::array{json::object{
                 {"type", "Ready"}, {"status", "True"}, {"lastTransitionTime", rfc3339(now)}}}}}}};
}

inline json::value ended_status(std::int64_t code, Time now) {
  json::object terminated{{"exitCode", code}, {"finishedAt", rfc3339(now)}};
  return {{"status",
           {{"phase", code == 0 ? "Succeeded" : "Failed"},
            {"conditions", json::array{}},
            {"containerStatuses",
             json::array{json::object{{"name", "main"},
                                      {"restartCount", 0},
                                      {"state", {{"terminated", std::move(terminated)}}}}}}}}};
}

// One pod template for all: labels {app: web} and a container of that image.
inline json::value pod_template(std::string_view image = "web:1") {
  return {{"metadata", {{"labels", {{"app", "web"}}}}},
          {"spec",
           {{"containers",
             json::array{json::object{{"name", "main"}, {"image", json::string(image)}}}}}}};
}

// A change of the template to another image.
inline json::value image(std::string_view name) {
  return {{"spec", {{"template", pod_template(name)}}}};
}
inline std::string_view image_of(const json::value& pod) {
  return json::get_string(json::get_array(pod, {"spec", "containers"})[0], {"image"});
}

class Cluster {
 public:
  explicit Cluster(const std::vector<control::Controller>& controllers) {
    for (const control::Controller& controller : controllers) runtime_.add(controller);
  }

  Time now() const { return clock_.now(); }
  client::Client& client() { return server_; }
  control::testing::MemoryServer& server() { return server_; }

  // Everything that follows at once from what is there.
  void settle() {
    for (int round = 0; round < 100; ++round) {
      const std::uint64_t before = server_.revision();
      runtime_.pump();
      if (server_.revision() == before) return;
      clock_.advance(std::chrono::milliseconds(1));
    }
    ADD_FAILURE() << "a hundred rounds did not settle";
  }
  void pass(Duration time) {
    clock_.advance(time);
    settle();
  }

  // Pods that have just been made run and are ready; at most `most` of them.
  int start_pods(int most = 1'000) {
    int started = 0;
    for (const Object& pod : pods()) {
      if (started == most) break;
      if (!phase(*pod).empty() && phase(*pod) != "Pending") continue;
      change(server_, pod_resource(), api::name(*pod), ready_status(now()), "status");
      ++started;
    }
    settle();
    return started;
  }
  void end_pod(std::string_view name, std::int64_t code) {
    change(server_, pod_resource(), name, ended_status(code, now()), "status");
    settle();
  }

  std::vector<Object> of(const api::Resource& resource) { return all(server_, resource); }
  std::vector<Object> pods() { return of(pod_resource()); }
  json::value get(const api::Resource& resource, std::string_view name) {
    Result<json::value> found = server_.get(resource, kNamespace, name);
    return found ? *std::move(found) : json::value();
  }
  void patch(const api::Resource& resource, std::string_view name, json::value body) {
    change(server_, resource, name, std::move(body));
    settle();
  }
  int told(std::string_view reason, std::string_view message_begins = {}) {
    const api::Resource events{.version = "v1", .plural = "events", .kind = "Event"};
    return static_cast<int>(std::ranges::count_if(of(events), [&](const Object& event) {
      return json::get_string(*event, {"reason"}) == reason &&
             json::get_string(*event, {"message"}).starts_with(message_begins);
    }));
  }

 private:
  env::sim::Clock clock_ = env::sim::Clock();
  control::testing::MemoryServer server_{clock_};
  control::Runtime runtime_{server_, clock_};
};

}  // namespace skiff::workloads::testing
