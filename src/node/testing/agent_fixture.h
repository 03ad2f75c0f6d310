// An agent with a runtime that runs nothing and a server in memory, for tests only.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include "env/posix/clock.h"
#include "node/agent.h"
#include "node/fake_runtime.h"
#include "node/testing/memory_client.h"
#include "node/testing/parse.h"

namespace skiff::node {

inline const api::Resource kPods{.group = "", .version = "v1", .plural = "pods", .kind = "Pod"};
inline const api::Resource kNodes{
    .group = "", .version = "v1", .plural = "nodes", .kind = "Node", .namespaced = false};
inline const api::Resource kEvents{
    .group = "", .version = "v1", .plural = "events", .kind = "Event"};
inline const api::Resource kLeases{
    .group = "coordination.k8s.io", .version = "v1", .plural = "leases", .kind = "Lease"};
inline const api::Resource kSecrets{
    .group = "", .version = "v1", .plural = "secrets", .kind = "Secret"};
inline const api::Resource kMaps{
    .group = "", .version = "v1", .plural = "configmaps", .kind = "ConfigMap"};
inline const api::Resource kClaims{.group = "",
                                   .version = "v1",
                                   .plural = "persistentvolumeclaims",
                                   .kind = "PersistentVolumeClaim"};
inline const api::Resource kVolumes{.group = "",
                                    .version = "v1",
                                    .plural = "persistentvolumes",
                                    .kind = "PersistentVolume",
                                    .namespaced = false};
inline const api::Resource kServices{
    .group = "", .version = "v1", .plural = "services", .kind = "Service"};
inline const api::Resource kMappings{.group = "skiff.dev",
                                     .version = "v1",
                                     .plural = "imagemappings",
                                     .kind = "ImageMapping",
                                     .namespaced = false};

class AgentTest : public ::testing::Test {
 protected:
  AgentTest() {
    char pattern[] = "/tmp/skiff-agent-XXXXXX";
    folder_ = ::mkdtemp(pattern);
    runtime_ = make_runtime();
    options_.node_name = "n1";
    options_.images_host = true;
    options_.workers = 2;
  }
  ~AgentTest() override {
    agent_.reset();
    runtime_.reset();
    std::error_code error;
    std::filesystem::remove_all(folder_, error);
  }

  std::unique_ptr<FakeRuntime> make_runtime() {
    return std::make_unique<FakeRuntime>(
        clock_, folder_, [this](std::string_view pod, std::string_view, int attempt) {
          const std::lock_guard lock(mutex_);
          const auto found = scripts_.find(std::string(pod));
          if (found == scripts_.end()) return FakeRuntime::Script{.forever = true};
          const auto& scripts = found->second;
          return scripts[std::min(static_cast<std::size_t>(attempt), scripts.size() - 1)];
        });
  }

  void start() {
    agent_ = std::make_unique<Agent>(client_, *runtime_, clock_, options_);
    agent_->start();
  }

  void script(const std::string& pod, std::vector<FakeRuntime::Script> scripts) {
    const std::lock_guard lock(mutex_);
    scripts_[pod] = std::move(scripts);
  }

  void create(const api::Resource& resource, std::string_view text, std::string ns = "default") {
    client::Write write;
    write.resource = resource;
    write.ns = resource.namespaced ? std::move(ns) : "";
    write.body = parse(text);
    const auto done = client_.write(write);
    ASSERT_TRUE(done) << done.error().message;
  }

  void create_pod(const std::string& name, const std::string& uid, const std::string& spec = "",
                  const std::string& container = "") {
    create(kPods, R"({"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"default","name":")" +
                      name + R"(","uid":")" + uid +
                      R"(","labels":{"app":"x"}},"spec":{"nodeName":"n1","restartPolicy":"Never")" +
                      spec + R"(,"containers":[{"name":"main","image":"img","command":["run"])" +
                      container + "}]}}");
  }

  void remove_pod(const std::string& name, int grace) {
    client::Write write;
    write.verb = client::Verb::kDelete;
    write.resource = kPods;
    write.ns = "default";
    write.name = name;
    write.body = json::object{{"gracePeriodSeconds", grace}};
    ASSERT_TRUE(client_.write(write));
  }

  // Looks every few milliseconds until it holds; fails after a minute, enough for any machine.
  template <class Holds>
  ::testing::AssertionResult eventually(Holds holds) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (std::chrono::steady_clock::now() < end) {
      if (holds()) return ::testing::AssertionSuccess();
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return ::testing::AssertionFailure() << "did not come about in a minute";
  }

  void patch(const api::Resource& resource, const std::string& name, std::string_view text) {
    client::Write write;
    write.verb = client::Verb::kMergePatch;
    write.resource = resource;
    write.ns = "default";
    write.name = name;
    write.body = parse(text);
    ASSERT_TRUE(client_.write(write));
  }

  void remove(const api::Resource& resource, const std::string& name) {
    client::Write write;
    write.verb = client::Verb::kDelete;
    write.resource = resource;
    write.ns = "default";
    write.name = name;
    ASSERT_TRUE(client_.write(write));
  }

  std::string in_volume(const std::string& uid, const std::string& path) {
    std::ifstream in(*runtime_->pod_folder(uid) + "/volumes/" + path);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }

  bool noted(std::string_view reason) {
    const auto events = client_.list(kEvents, "", {});
    return std::any_of(events->items.begin(), events->items.end(), [&](const Object& event) {
      return json::get_string(*event, {"reason"}) == reason;
    });
  }

  std::string phase(const std::string& name) {
    const auto pod = client_.get(kPods, "default", name);
    return pod ? std::string(json::get_string(*pod, {"status", "phase"})) : "gone";
  }

  std::string waiting(const std::string& name, std::string_view field = "reason") {
    const auto pod = client_.get(kPods, "default", name);
    if (!pod) return "gone";
    const json::array& all = json::get_array(*pod, {"status", "containerStatuses"});
    return all.empty() ? "" : std::string(json::get_string(all[0], {"state", "waiting", field}));
  }

  // The message of an event with this reason.
  std::string event(std::string_view reason) {
    const api::Resource events{.group = "", .version = "v1", .plural = "events", .kind = "Event"};
    for (const Object& object : client_.list(events, "", {})->items) {
      if (json::get_string(*object, {"reason"}) == reason) {
        return std::string(json::get_string(*object, {"message"}));
      }
    }
    return "";
  }

  int journal_count(std::string_view entry) {
    const auto journal = runtime_->journal();
    return static_cast<int>(std::count(journal.begin(), journal.end(), entry));
  }

  env::posix::Clock clock_;
  std::string folder_;
  std::mutex mutex_;
  std::map<std::string, std::vector<FakeRuntime::Script>> scripts_;
  MemoryClient client_;
  std::unique_ptr<FakeRuntime> runtime_;
  AgentOptions options_;
  std::unique_ptr<Agent> agent_;
};

}  // namespace skiff::node
