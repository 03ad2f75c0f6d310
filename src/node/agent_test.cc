#include "node/agent.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include "api/meta.h"
#include "env/posix/clock.h"
#include "image/archive.h"
#include "image/test_image.h"
#include "node/fake_runtime.h"
#include "node/node_object.h"

namespace skiff::node {
namespace {

json::value parse(std::string_view text) {
  auto parsed = json::parse(text);
  EXPECT_TRUE(parsed) << text;
  return *parsed;
}

void merge(json::value& target, const json::value& patch) {
  if (!patch.is_object()) {
    target = patch;
    return;
  }
  if (!target.is_object()) target = json::object();
  for (const auto& [key, value] : patch.get_object()) {
    if (value.is_null()) {
      target.get_object().erase(key);
    } else {
      merge(target.get_object()[key], value);
    }
  }
}

// The smallest API server that keeps the promises of client.h: revisions, preconditions, watches,
// graceful deletion of pods.
class MemoryClient final : public client::Client {
 public:
  Result<json::value> get(const api::Resource& resource, std::string_view ns,
                          std::string_view name) override {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(key(resource, ns, name));
    if (found == objects_.end()) return fail(Code::kNotFound, std::string(name) + " not found");
    return *found->second;
  }

  Result<client::List> list(const api::Resource& resource, std::string_view,
                            const client::ListOptions&) override {
    const std::lock_guard lock(mutex_);
    client::List out{.revision = revision_};
    for (const auto& [k, object] : objects_) {
      if (k.starts_with(resource.key() + "|")) out.items.push_back(object);
    }
    return out;
  }

  Result<json::value> write(const client::Write& w) override {
    if (before_write_) before_write_(w);
    Result<json::value> out = json::value();
    {
      const std::lock_guard lock(mutex_);
      out = write_locked(w);
    }
    tell_all();
    return out;
  }

  // Somebody else who is a little quicker. Set before the agent starts.
  void before_write(std::function<void(const client::Write&)> fn) { before_write_ = std::move(fn); }

  void submit(std::vector<client::Write> writes, Done done) override {
    std::vector<Result<json::value>> results;
    for (const client::Write& w : writes) {
      results.push_back(write(w));
      if (!results.back()) break;
    }
    done(std::move(results));
  }

  Result<std::unique_ptr<client::Watch>> watch(const api::Resource& resource, std::uint64_t after,
                                               std::function<void()> ready) override {
    const std::lock_guard lock(mutex_);
    if (after < forgotten_) return fail(Code::kExpired, "too old");
    watchers_[++last_watcher_] = std::move(ready);
    return std::make_unique<MemoryWatch>(*this, resource.key(), after, last_watcher_);
  }

  void when_safe(std::function<void()> fn) override {
    {
      const std::lock_guard lock(mutex_);
      if (hold_safe_) return held_.push_back(std::move(fn));
    }
    fn();
  }

  void hold_safe(bool hold) {
    std::vector<std::function<void()>> held;
    {
      const std::lock_guard lock(mutex_);
      hold_safe_ = hold;
      if (!hold) held.swap(held_);
    }
    for (const auto& fn : held) fn();
  }

  // Every watch must list again.
  void forget_history() {
    {
      const std::lock_guard lock(mutex_);
      forgotten_ = revision_ + 1;
      ++revision_;
      log_.clear();
    }
    tell_all();
  }

 private:
  struct Change {
    std::string resource = {};
    std::uint64_t revision = 0;
    client::Event event = {};
  };

  class MemoryWatch final : public client::Watch {
   public:
    MemoryWatch(MemoryClient& owner, std::string resource, std::uint64_t after, int number)
        : owner_(owner), resource_(std::move(resource)), number_(number), after_(after) {}
    ~MemoryWatch() override {
      const std::lock_guard telling(owner_.telling_);
      const std::lock_guard lock(owner_.mutex_);
      owner_.watchers_.erase(number_);
    }
    Result<std::vector<client::Event>> poll() override {
      const std::lock_guard lock(owner_.mutex_);
      if (after_ < owner_.forgotten_) return fail(Code::kExpired, "too old");
      std::vector<client::Event> out;
      for (const Change& change : owner_.log_) {
        if (change.revision <= after_) continue;
        after_ = change.revision;
        if (change.resource == resource_) out.push_back(change.event);
      }
      return out;
    }

   private:
    MemoryClient& owner_;
    const std::string resource_;
    const int number_;
    std::uint64_t after_;
  };

  static std::string key(const api::Resource& r, std::string_view ns, std::string_view name) {
    return r.key() + "|" + std::string(ns) + "|" + std::string(name);
  }

  void tell_all() {
    // Held through the calls: the end of a watch waits for one that is under way.
    const std::lock_guard telling(telling_);
    std::map<int, std::function<void()>> watchers;
    {
      const std::lock_guard lock(mutex_);
      watchers = watchers_;
    }
    for (const auto& [number, ready] : watchers) ready();
  }

  Object keep(const client::Write& w, const std::string& k, json::value object,
              client::EventType type) {
    json::make_object(object, {"metadata"})["resourceVersion"] = std::to_string(++revision_);
    Object shared = std::make_shared<const json::value>(std::move(object));
    if (type == client::EventType::kDeleted) {
      objects_.erase(k);
    } else {
      objects_[k] = shared;
    }
    log_.push_back({w.resource.key(), revision_, {type, shared}});
    return shared;
  }

  Result<json::value> write_locked(const client::Write& w) {
    const std::string name(w.name.empty() ? api::name(w.body) : std::string_view(w.name));
    const std::string k = key(w.resource, w.ns, name);
    const auto found = objects_.find(k);
    if (w.verb == client::Verb::kCreate) {
      if (found != objects_.end()) return fail(Code::kAlreadyExists, name + " already exists");
      json::value object = w.body;
      json::object& metadata = json::make_object(object, {"metadata"});
      if (!metadata.contains("uid")) metadata["uid"] = "uid-" + std::to_string(revision_ + 1);
      return *keep(w, k, std::move(object), client::EventType::kAdded);
    }
    if (found == objects_.end()) return fail(Code::kNotFound, name + " not found");
    json::value object = *found->second;
    if (!w.uid.empty() && w.uid != api::uid(object)) return fail(Code::kConflict, "uid differs");
    if (w.verb == client::Verb::kDelete) {
      const auto grace = json::get_int(w.body, {"gracePeriodSeconds"}).value_or(30);
      const bool pod = w.resource.plural == "pods";
      if (!pod || grace == 0) {
        return *keep(w, k, std::move(object), client::EventType::kDeleted);
      }
      json::object& metadata = json::make_object(object, {"metadata"});
      metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z";
      metadata["deletionGracePeriodSeconds"] = grace;
      return *keep(w, k, std::move(object), client::EventType::kModified);
    }
    merge(object, w.body);
    return *keep(w, k, std::move(object), client::EventType::kModified);
  }

  std::mutex telling_;  // taken before mutex_
  std::function<void(const client::Write&)> before_write_ = {};
  mutable std::mutex mutex_;
  std::map<std::string, Object> objects_ = {};
  std::vector<Change> log_ = {};
  std::map<int, std::function<void()>> watchers_ = {};
  int last_watcher_ = 0;
  std::vector<std::function<void()>> held_ = {};
  bool hold_safe_ = false;
  std::uint64_t revision_ = 1;
  std::uint64_t forgotten_ = 0;
};

const api::Resource kPods{.group = "", .version = "v1", .plural = "pods", .kind = "Pod"};
const api::Resource kNodes{
    .group = "", .version = "v1", .plural = "nodes", .kind = "Node", .namespaced = false};
const api::Resource kEvents{.group = "", .version = "v1", .plural = "events", .kind = "Event"};
const api::Resource kLeases{
    .group = "coordination.k8s.io", .version = "v1", .plural = "leases", .kind = "Lease"};
const api::Resource kSecrets{.group = "", .version = "v1", .plural = "secrets", .kind = "Secret"};
const api::Resource kMaps{
    .group = "", .version = "v1", .plural = "configmaps", .kind = "ConfigMap"};
const api::Resource kClaims{.group = "",
                            .version = "v1",
                            .plural = "persistentvolumeclaims",
                            .kind = "PersistentVolumeClaim"};
const api::Resource kVolumes{.group = "",
                             .version = "v1",
                             .plural = "persistentvolumes",
                             .kind = "PersistentVolume",
                             .namespaced = false};
const api::Resource kServices{
    .group = "", .version = "v1", .plural = "services", .kind = "Service"};
const api::Resource kMappings{.group = "skiff.dev",
                              .version = "v1",
                              .plural = "imagemappings",
                              .kind = "ImageMapping",
                              .namespaced = false};

class AgentTest : public testing::Test {
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

  // Looks every few milliseconds until it holds; fails after ten seconds.
  template <class Holds>
  testing::AssertionResult eventually(Holds holds) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (std::chrono::steady_clock::now() < end) {
      if (holds()) return testing::AssertionSuccess();
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return testing::AssertionFailure() << "did not come about in ten seconds";
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

TEST_F(AgentTest, RegistersTheNodeWithItsCapacityAndALease) {
  options_.capacity = {{"nvidia.com/gpu", "4"}};
  start();
  EXPECT_TRUE(
      eventually([&] { return client_.get(kLeases, "kube-node-lease", "n1").has_value(); }));
  const auto node = client_.get(kNodes, "", "n1");
  ASSERT_TRUE(node);
  EXPECT_TRUE(api::condition_true(*node, "Ready"));
  EXPECT_EQ(json::get_string(*node, {"status", "capacity", "pods"}), "1000");
  EXPECT_EQ(json::get_string(*node, {"status", "allocatable", "nvidia.com/gpu"}), "4");
}

TEST_F(AgentTest, RunsAPodToItsEndAndTellsItsStory) {
  script("p", {{.exit_code = 0}});
  start();
  create_pod("p", "u1");
  EXPECT_TRUE(eventually([&] { return phase("p") == "Succeeded"; }));
  EXPECT_TRUE(eventually([&] { return journal_count("stop u1") == 1; }));
  EXPECT_EQ(journal_count("start u1/main/0"), 1);
  const auto pod = client_.get(kPods, "default", "p");
  EXPECT_FALSE(json::get_string(*pod, {"status", "podIP"}).empty());
  const auto events = client_.list(kEvents, "", {});
  std::vector<std::string> reasons;
  for (const Object& event : events->items) {
    reasons.emplace_back(json::get_string(*event, {"reason"}));
  }
  std::sort(reasons.begin(), reasons.end());
  EXPECT_EQ(reasons, (std::vector<std::string>{"Created", "Started"}));
}

TEST_F(AgentTest, LeavesPodsOfOtherNodesAlone) {
  start();
  create(kPods, R"({"metadata":{"namespace":"default","name":"q","uid":"u2"},
                    "spec":{"nodeName":"n2","containers":[{"name":"main","command":["x"]}]}})");
  create_pod("p", "u1");
  EXPECT_TRUE(eventually([&] { return phase("p") == "Running"; }));
  EXPECT_EQ(journal_count("sandbox u2"), 0);
}

TEST_F(AgentTest, StartsNothingBeforeTheBindingIsOnDisk) {
  client_.hold_safe(true);
  start();
  create_pod("p", "u1");
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_TRUE(runtime_->journal().empty());
  client_.hold_safe(false);
  EXPECT_TRUE(eventually([&] { return phase("p") == "Running"; }));
}

TEST_F(AgentTest, RestartsAFailingContainerByItsPolicy) {
  script("p", {{.exit_code = 1}, {.forever = true}});
  start();
  create(kPods, R"({"metadata":{"namespace":"default","name":"p","uid":"u1"},
      "spec":{"nodeName":"n1","restartPolicy":"OnFailure",
              "containers":[{"name":"main","image":"i","command":["x"]}]}})");
  EXPECT_TRUE(eventually([&] {
    const auto pod = client_.get(kPods, "default", "p");
    const json::array& all = json::get_array(*pod, {"status", "containerStatuses"});
    return !all.empty() && json::get_int(all[0], {"restartCount"}) == 1 &&
           json::get_bool(all[0], {"ready"}) == true;
  }));
}

TEST_F(AgentTest, DeletesWithGraceAndRemovesEveryTrace) {
  start();
  create_pod("p", "u1");
  EXPECT_TRUE(eventually([&] { return phase("p") == "Running"; }));
  remove_pod("p", 30);
  EXPECT_TRUE(eventually([&] { return phase("p") == "gone"; }));
  EXPECT_TRUE(eventually([&] { return runtime_->list().empty(); }));
  EXPECT_EQ(journal_count("signal u1/main/15"), 1);
  EXPECT_EQ(journal_count("signal u1/main/9"), 0);
}

TEST_F(AgentTest, KillsWhatIgnoresTheRequestToEnd) {
  script("p", {{.forever = true, .ignores_term = true}});
  start();
  create_pod("p", "u1");
  EXPECT_TRUE(eventually([&] { return phase("p") == "Running"; }));
  remove_pod("p", 1);
  EXPECT_TRUE(eventually([&] { return phase("p") == "gone"; }));
  EXPECT_EQ(journal_count("signal u1/main/9"), 1);
}

TEST_F(AgentTest, StopsAPodWhoseObjectWasRemovedByForce) {
  start();
  create_pod("p", "u1");
  EXPECT_TRUE(eventually([&] { return phase("p") == "Running"; }));
  remove_pod("p", 0);
  EXPECT_TRUE(eventually([&] { return runtime_->list().empty(); }));
}

TEST_F(AgentTest, AdoptsWhatRunsAndClearsWhatNobodyKnowsAfterARestart) {
  start();
  create_pod("p", "u1");
  EXPECT_TRUE(eventually([&] { return phase("p") == "Running"; }));
  agent_.reset();
  ASSERT_TRUE(runtime_->start_sandbox({.pod_uid = "orphan"}));
  start();
  EXPECT_TRUE(eventually([&] { return journal_count("remove orphan") == 1; }));
  remove_pod("p", 30);
  EXPECT_TRUE(eventually([&] { return phase("p") == "gone"; }));
  EXPECT_EQ(journal_count("start u1/main/0"), 1);
  EXPECT_EQ(journal_count("sandbox u1"), 1);
}

TEST_F(AgentTest, LeavesAPodOfAnotherNameAloneUntilItsObjectGoes) {
  start();
  create_pod("p", "u1");
  EXPECT_TRUE(eventually([&] { return phase("p") == "Running"; }));
  agent_.reset();
  ASSERT_TRUE(runtime_->start_sandbox({.pod_uid = "z-orphan"}));
  options_.node_name = "renamed";
  options_.workers = 1;  // one removal after another, in the order of the uids
  start();
  EXPECT_TRUE(eventually([&] { return journal_count("remove z-orphan") == 1; }));
  EXPECT_EQ(journal_count("stop u1") + journal_count("remove u1"), 0);
  remove_pod("p", 0);
  EXPECT_TRUE(eventually([&] { return journal_count("remove u1") == 1; }));
}

TEST(NodeName, IsMadeFromAnyHostName) {
  struct Case {
    const char* host;
    const char* name;
  };
  for (const Case& c : {Case{"box", "box"}, Case{"Box-7.Lab.Example", "box-7.lab.example"},
                        Case{"my_box", "my-box"}, Case{"-odd-.-name-", "odd.name"},
                        Case{"a..b", "a.b"}, Case{"", "skiff"}, Case{"___", "skiff"}}) {
    EXPECT_EQ(valid_node_name(c.host), c.name) << c.host;
  }
  EXPECT_LE(valid_node_name(std::string(400, 'x')).size(), 63U) << "it is a label's value too";
}

TEST_F(AgentTest, ListsAgainWhenHistoryIsGone) {
  start();
  create_pod("p", "u1");
  EXPECT_TRUE(eventually([&] { return phase("p") == "Running"; }));
  client_.forget_history();
  create_pod("q", "u2");
  EXPECT_TRUE(eventually([&] { return phase("q") == "Running"; }));
  EXPECT_EQ(journal_count("start u1/main/0"), 1);
}

TEST_F(AgentTest, AnUnmappedImageWaitsWithTheRemediesUntilItIsMapped) {
  options_.images_host = false;
  start();
  create_pod("p", "u1");
  EXPECT_TRUE(eventually([&] { return waiting("p") == "ErrImagePull"; }));
  const std::string message = waiting("p", "message");
  EXPECT_NE(message.find("skiff image map img --host"), std::string::npos) << message;
  EXPECT_NE(message.find("skiff up --images=host"), std::string::npos) << message;
  create(kMappings, R"({"metadata":{"name":"m"},"spec":{"pattern":"img","host":true}})");
  EXPECT_TRUE(eventually([&] { return phase("p") == "Running"; }));
}

// With a store that has the image "img", whose configuration names a program.
class ImageAgentTest : public AgentTest {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "layers are unpacked by root only";
    auto opened = image::Images::open(folder_ + "/images");
    ASSERT_TRUE(opened);
    images_ = std::move(*opened);
    options_.images_host = false;
    options_.images = images_.get();
  }
  void TearDown() override { agent_.reset(); }
  void load(const std::string& name) {
    namespace it = image::testing;
    const auto image = it::make_image({it::tar({it::file("etc/passwd", "u:x:7:8::/h:\n")})},
                                      {{"User", "u"}, {"Env", json::array{"WORD=x"}}});
    const auto source = image::string_source(it::docker_archive(image, {name}));
    ASSERT_TRUE(image::load_archive(images_->store(), *source));
  }
  std::vector<std::string> reasons() {
    std::vector<std::string> out;
    for (const Object& event : client_.list(kEvents, "", {})->items) {
      out.emplace_back(json::get_string(*event, {"reason"}));
    }
    return out;
  }

  std::unique_ptr<image::Images> images_;
};

TEST_F(ImageAgentTest, AnImageOfTheStoreIsRunAndHeldWhileThePodIsThere) {
  load("img:latest");
  start();
  create_pod("p", "u1");
  EXPECT_TRUE(eventually([&] { return phase("p") == "Running"; }));
  const ContainerSpec spec = runtime_->started().at(0);
  EXPECT_EQ(spec.layers.size(), 1U);
  EXPECT_EQ(spec.uid, 7);
  EXPECT_EQ(spec.gid, 8);
  EXPECT_NE(std::ranges::find(spec.env, "WORD=x"), spec.env.end());
  EXPECT_NE(std::ranges::find(spec.env, "HOME=/h"), spec.env.end());
  const auto pod = client_.get(kPods, "default", "p");
  const std::string id(
      json::get_string(json::get_array(*pod, {"status", "containerStatuses"}).at(0), {"imageID"}));
  EXPECT_TRUE(id.starts_with("docker.io/library/img@sha256:")) << id;
  EXPECT_EQ(images_->store().owners(), std::vector<std::string>{"u1"});
  remove_pod("p", 0);
  EXPECT_TRUE(eventually([&] { return images_->store().owners().empty(); }));
}

TEST_F(ImageAgentTest, AnImageThatWasRemovedBetweenTwoTriesIsLookedForAgain) {
  load("img:latest");
  script("p", {FakeRuntime::Script{.refuses_start = "busy"}, FakeRuntime::Script{.forever = true}});
  start();
  create_pod("p", "u1", "", R"(,"imagePullPolicy":"Never")");
  EXPECT_TRUE(eventually([&] { return waiting("p") == "RunContainerError"; }));
  ASSERT_TRUE(images_->store().remove(*image::parse_reference("img")));
  EXPECT_TRUE(eventually([&] { return waiting("p") == "ErrImageNeverPull"; }));
}

TEST_F(ImageAgentTest, WithThePolicyNeverAnImageIsWaitedFor) {
  start();
  create_pod("p", "u1", "", R"(,"imagePullPolicy":"Never")");
  EXPECT_TRUE(eventually([&] { return waiting("p") == "ErrImageNeverPull"; }));
  EXPECT_EQ(waiting("p", "message"),
            "Container image \"img\" is not present with pull policy of Never");
  load("img:latest");
  EXPECT_TRUE(eventually([&] { return phase("p") == "Running"; })) << "the next look finds it";
}

TEST_F(ImageAgentTest, AMappingComesBeforeTheStoreAndAfterAFailedPull) {
  start();
  create_pod("p", "u1", "", R"(,"image":"localhost:1/none:1","imagePullPolicy":"Always")");
  EXPECT_TRUE(eventually([&] { return waiting("p") == "ErrImagePull"; }));
  EXPECT_NE(waiting("p", "message").find("skiff image map"), std::string::npos);
  const auto told = reasons();
  EXPECT_NE(std::ranges::find(told, "Pulling"), told.end());
  EXPECT_NE(std::ranges::find(told, "Failed"), told.end());
  create(kMappings, R"({"metadata":{"name":"m"},"spec":{"pattern":"localhost:1/*","host":true}})");
  EXPECT_TRUE(eventually([&] { return phase("p") == "Running"; }));
  EXPECT_TRUE(runtime_->started().at(0).layers.empty());
  EXPECT_TRUE(images_->store().owners().empty());
}

TEST_F(ImageAgentTest, ANameThatIsNoneIsToldAsSuch) {
  start();
  create_pod("p", "u1", "", R"(,"image":"No Name")");
  EXPECT_TRUE(eventually([&] { return waiting("p") == "InvalidImageName"; }));
  const auto told = reasons();
  EXPECT_NE(std::ranges::find(told, "InspectFailed"), told.end());
}

TEST_F(ImageAgentTest, WhatPodsOfAnEarlierLifeHeldIsLetGo) {
  load("img:latest");
  ASSERT_TRUE(images_->store().use("long-gone", images_->store().list()->at(0)));
  start();
  EXPECT_TRUE(eventually([&] { return images_->store().owners().empty(); }));
}

TEST_F(AgentTest, AMissingSecretIsWaitedFor) {
  start();
  create_pod("p", "u1", "",
             R"(,"env":[{"name":"A","valueFrom":{"secretKeyRef":{"name":"s","key":"k"}}}])");
  EXPECT_TRUE(eventually([&] { return waiting("p") == "CreateContainerConfigError"; }));
  create(kSecrets, R"({"metadata":{"name":"s","namespace":"default"},"data":{"k":"dmFsdWU="}})");
  EXPECT_TRUE(eventually([&] { return phase("p") == "Running"; }));
  const auto env = runtime_->started().at(0).env;
  EXPECT_NE(std::find(env.begin(), env.end(), "A=value"), env.end());
}

TEST_F(AgentTest, ARefusingRuntimeIsTriedAgain) {
  script("p", {{.refuses_start = "no room"}});
  start();
  create_pod("p", "u1");
  EXPECT_TRUE(eventually([&] { return waiting("p") == "RunContainerError"; }));
  EXPECT_EQ(waiting("p", "message"), "no room");
  script("p", {{.forever = true}});
  EXPECT_TRUE(eventually([&] { return phase("p") == "Running"; }));
}

TEST_F(AgentTest, ASandboxThatCannotBeMadeIsTriedAgain) {
  runtime_->fail_sandboxes("no bridge");
  start();
  create_pod("p", "u1");
  EXPECT_TRUE(eventually([&] { return waiting("p", "message") == "no bridge"; }));
  runtime_->fail_sandboxes("");
  EXPECT_TRUE(eventually([&] { return phase("p") == "Running"; }));
}

TEST_F(AgentTest, ALostSandboxFailsAPodThatMayNotRestart) {
  start();
  create_pod("p", "u1");
  EXPECT_TRUE(eventually([&] { return phase("p") == "Running"; }));
  runtime_->lose_sandbox("u1");
  EXPECT_TRUE(eventually([&] { return phase("p") == "Failed"; }));
}

TEST_F(AgentTest, VolumesAndTheirMountsReachTheRuntime) {
  create(kSecrets, R"({"metadata":{"name":"s","namespace":"default"},"data":{"k":"dmFsdWU="}})");
  start();
  create_pod("p", "u1", R"(,"volumes":[{"name":"v","secret":{"secretName":"s"}}])",
             R"(,"volumeMounts":[{"name":"v","mountPath":"/etc/s","readOnly":true}])");
  EXPECT_TRUE(eventually([&] { return phase("p") == "Running"; }));
  const ContainerSpec spec = runtime_->started().at(0);
  ASSERT_EQ(spec.mounts.size(), 1U);
  EXPECT_EQ(spec.mounts[0].target, "/etc/s");
  EXPECT_TRUE(std::filesystem::exists(spec.mounts[0].source + "/k"));
}

TEST_F(AgentTest, WhatAPodWaitsForStartsItWhenItComes) {
  // While time stands still nothing is tried again for its own sake.
  struct Still final : env::Clock {
    Time now() const override { return Time(std::chrono::hours(24)); }
    Duration elapsed() const override { return Duration(0); }
  };
  const Still still;
  agent_ = std::make_unique<Agent>(client_, *runtime_, still, options_);
  agent_->start();
  create_pod("p", "u1", R"(,"volumes":[{"name":"v","secret":{"secretName":"s"}}])");
  EXPECT_TRUE(eventually([&] { return noted("FailedMount"); }));
  create(kSecrets, R"({"metadata":{"name":"s","namespace":"default"},"data":{}})");
  EXPECT_TRUE(eventually([&] { return phase("p") == "Running"; }));
  agent_.reset();  // before its clock
}

TEST_F(AgentTest, VolumesFollowWhatTheyAreMadeOf) {
  create(kMaps, R"({"metadata":{"name":"m","namespace":"default"},"data":{"k":"one"}})");
  start();
  create_pod("p", "u1",
             R"(,"volumes":[{"name":"v","configMap":{"name":"m"}},
                {"name":"o","secret":{"secretName":"later","optional":true}},
                {"name":"d","downwardAPI":{"items":[{"path":"labels",
                  "fieldRef":{"fieldPath":"metadata.labels"}}]}}])");
  EXPECT_TRUE(eventually([&] { return phase("p") == "Running"; }));
  EXPECT_EQ(in_volume("u1", "v/k"), "one");
  patch(kMaps, "m", R"({"data":{"k":"two"}})");
  EXPECT_TRUE(eventually([&] { return in_volume("u1", "v/k") == "two"; }));
  create(kSecrets, R"({"metadata":{"name":"later","namespace":"default"},"data":{"k":"eA=="}})");
  EXPECT_TRUE(eventually([&] { return in_volume("u1", "o/k") == "x"; }));
  EXPECT_EQ(in_volume("u1", "d/labels"), "app=\"x\"");
  patch(kPods, "p", R"({"metadata":{"labels":{"app":"y"}}})");
  EXPECT_TRUE(eventually([&] { return in_volume("u1", "d/labels") == "app=\"y\""; }));
  // What a source once gave stays when the source goes, and the user is told.
  remove(kMaps, "m");
  EXPECT_TRUE(eventually([&] { return noted("FailedMount"); }));
  EXPECT_EQ(in_volume("u1", "v/k"), "two");
}

TEST_F(AgentTest, AChangeOfLabelsBesideAStatusWriteReachesTheFiles) {
  bool changed = false;
  client_.before_write([&](const client::Write& write) {
    const bool running = json::get_string(write.body, {"status", "phase"}) == "Running";
    if (write.subresource == "status" && running && !std::exchange(changed, true)) {
      patch(kPods, "p", R"({"metadata":{"labels":{"app":"y"}}})");
    }
  });
  start();
  create_pod("p", "u1",
             R"(,"volumes":[{"name":"d","downwardAPI":{"items":[{"path":"labels",
                  "fieldRef":{"fieldPath":"metadata.labels"}}]}}])");
  EXPECT_TRUE(eventually([&] { return in_volume("u1", "d/labels") == "app=\"y\""; }));
}

TEST_F(AgentTest, TokensOfRunningPodsAreRenewedInTime) {
  options_.volumes_every = std::chrono::milliseconds(2);
  options_.tokens = [n = 0](const TokenWish& wish) mutable -> Result<std::string> {
    return wish.pod + std::to_string(++n);
  };
  start();
  create_pod("p", "u1", R"(,"volumes":[{"name":"t","projected":{"sources":[
      {"serviceAccountToken":{"path":"token","expirationSeconds":1}}]}}])");
  EXPECT_TRUE(eventually([&] { return in_volume("u1", "t/token").starts_with("p"); }));
  const std::string first = in_volume("u1", "t/token");
  EXPECT_TRUE(eventually([&] {
    const std::string now = in_volume("u1", "t/token");
    return !now.empty() && now != first;
  }));
}

TEST_F(AgentTest, APodWhoseVolumeOutgrowsItsLimitIsEvicted) {
  options_.volumes_every = std::chrono::milliseconds(2);
  start();
  create_pod("p", "u1", R"(,"volumes":[{"name":"v","emptyDir":{"sizeLimit":"64Ki"}}])");
  create_pod("q", "u2", R"(,"volumes":[{"name":"v","emptyDir":{"sizeLimit":"64Ki"}}])");
  EXPECT_TRUE(eventually([&] { return phase("p") == "Running" && phase("q") == "Running"; }));
  std::ofstream(*runtime_->pod_folder("u1") + "/volumes/v/big") << std::string(100 << 10, 'x');
  EXPECT_TRUE(eventually([&] { return phase("p") == "Failed"; }));
  const auto pod = client_.get(kPods, "default", "p");
  EXPECT_EQ(json::get_string(*pod, {"status", "reason"}), "Evicted");
  EXPECT_EQ(json::get_string(*pod, {"status", "message"}),
            "Usage of EmptyDir volume \"v\" exceeds the limit \"64Ki\". ");
  EXPECT_TRUE(noted("Evicted"));
  EXPECT_EQ(phase("q"), "Running");
}

TEST_F(AgentTest, TheFolderOfAReleasedVolumeGoesOnlyWhenItsClaimIsGone) {
  options_.volumes_folder = folder_ + "/volumes";
  std::filesystem::create_directories(folder_ + "/volumes/pv/deep");
  create(kClaims, R"({"metadata":{"name":"c","namespace":"default","uid":"c1"}})");
  create(kVolumes, R"({"metadata":{"name":"pv","uid":"v1","finalizers":["skiff.dev/volume-folder"],
      "annotations":{"pv.kubernetes.io/provisioned-by":"skiff.dev/local-path"}},
      "spec":{"persistentVolumeReclaimPolicy":"Delete","hostPath":{"path":")" +
                       folder_ + R"(/volumes/pv"},
      "claimRef":{"namespace":"default","name":"c","uid":"c1"}},"status":{"phase":"Released"}})");
  start();
  // When this pod runs, the volume has been looked at.
  create_pod("p", "u1");
  EXPECT_TRUE(eventually([&] { return phase("p") == "Running"; }));
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/volumes/pv/deep"));
  remove(kClaims, "c");
  client::Write touch;
  touch.verb = client::Verb::kMergePatch;
  touch.resource = kVolumes;
  touch.name = "pv";
  touch.body = parse(R"({"metadata":{"labels":{"a":"b"}}})");
  ASSERT_TRUE(client_.write(touch));
  EXPECT_TRUE(eventually([&] { return !client_.get(kVolumes, "", "pv"); }));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/volumes/pv"));
}

TEST_F(AgentTest, APodOnTheBridgeHasItsOwnNameInItsHosts) {
  options_.dns_address = "10.0.0.1";
  start();
  create_pod("p", "u1");
  EXPECT_TRUE(eventually([&] { return phase("p") == "Running"; }));
  const ContainerSpec spec = runtime_->started().at(0);
  ASSERT_EQ(spec.mounts.size(), 1U);
  EXPECT_EQ(spec.mounts[0].target, "/etc/hosts");
  std::ifstream in(spec.mounts[0].source);
  const std::string hosts((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  EXPECT_NE(hosts.find("10.64.0.2\tp\n"), std::string::npos) << hosts;
}

TEST_F(AgentTest, TellsWhichRunsAreUnderWay) {
  start();
  create_pod("p", "u1");
  EXPECT_TRUE(eventually([&] { return phase("p") == "Running"; }));
  EXPECT_TRUE(agent_->running("u1", "main", 0));
  EXPECT_FALSE(agent_->running("u1", "main", 1));
  EXPECT_FALSE(agent_->running("u2", "main", 0));
  remove_pod("p", 30);
  EXPECT_TRUE(eventually([&] { return !agent_->running("u1", "main", 0); }));
}

TEST_F(AgentTest, SaysOfNoRunThatItIsOverBeforeItHasLooked) {
  agent_ = std::make_unique<Agent>(client_, *runtime_, clock_, options_);
  EXPECT_TRUE(agent_->running("u1", "main", 0));
  agent_->start();
  EXPECT_TRUE(eventually([&] { return !agent_->running("u1", "main", 0); }));
}

TEST_F(AgentTest, ARunOfAnEarlierLifeIsUnderWayTheWholeTime) {
  start();
  create_pod("p", "u1");
  EXPECT_TRUE(eventually([&] { return phase("p") == "Running"; }));
  agent_.reset();
  start();
  create_pod("q", "u2");
  while (phase("q") != "Running") ASSERT_TRUE(agent_->running("u1", "main", 0));
  EXPECT_TRUE(agent_->running("u1", "main", 0));
}

TEST_F(AgentTest, SeesADeletionThatCameJustBeforeItsOwnWrite) {
  bool deleted = false;
  client_.before_write([&](const client::Write& write) {
    const bool running = json::get_string(write.body, {"status", "phase"}) == "Running";
    if (write.subresource == "status" && running && !std::exchange(deleted, true)) {
      remove_pod("p", 30);
    }
  });
  start();
  create_pod("p", "u1");
  EXPECT_TRUE(eventually([&] { return phase("p") == "gone"; }));
}

TEST_F(AgentTest, NamesOfReadyPodsAreServed) {
  start();
  create(kServices, R"({"metadata":{"name":"svc","namespace":"default"},
                        "spec":{"clusterIP":"None","selector":{"app":"x"}}})");
  create_pod("p", "u1", R"(,"hostname":"h","subdomain":"svc")");
  EXPECT_TRUE(eventually([&] {
    const auto records = agent_->dns_records();
    const auto found = records->names.find("h.svc.default.svc.cluster.local");
    return found != records->names.end() && found->second.addresses.size() == 1;
  }));
}

TEST_F(AgentTest, HundredsOfPodsAllFinishAndEachRunsOnce) {
  constexpr int kCount = 300;
  for (int i = 0; i < kCount; ++i) script("p" + std::to_string(i), {{.exit_code = 0}});
  start();
  for (int i = 0; i < kCount; ++i) create_pod("p" + std::to_string(i), "u" + std::to_string(i));
  EXPECT_TRUE(eventually([&] {
    for (int i = 0; i < kCount; ++i) {
      if (phase("p" + std::to_string(i)) != "Succeeded") return false;
    }
    return true;
  }));
  EXPECT_EQ(runtime_->started().size(), static_cast<std::size_t>(kCount));
}

TEST_F(AgentTest, ReadinessFollowsItsProbeAndAnErrorIsTold) {
  std::atomic_bool well = false;
  runtime_->execute_with([&](std::string_view, const ExecSpec&) {
    return FakeRuntime::Told{.exit_code = well ? 0 : 1, .output = "not yet"};
  });
  start();
  create_pod("p", "u1", "",
             R"(,"readinessProbe":{"exec":{"command":["check"]},"periodSeconds":1})");
  const auto ready = [&] {
    const auto pod = client_.get(kPods, "default", "p");
    return pod && api::condition_true(*pod, "Ready");
  };
  EXPECT_TRUE(eventually([&] { return event("Unhealthy") == "Readiness probe failed: not yet"; }));
  EXPECT_EQ(phase("p"), "Running");
  EXPECT_FALSE(ready());
  well = true;
  EXPECT_TRUE(eventually(ready));
  agent_.reset();  // what it asks is on this stack
}

TEST_F(AgentTest, AFailedLivenessProbeRestartsTheContainer) {
  std::atomic_int asked = 0;
  runtime_->execute_with([&](std::string_view, const ExecSpec&) {
    return FakeRuntime::Told{.exit_code = asked++ == 0 ? 1 : 0, .output = "stuck"};
  });
  start();
  create_pod("p", "u1", R"(,"restartPolicy":"Always")",
             R"(,"livenessProbe":{"exec":{"command":["check"]},"failureThreshold":1})");
  EXPECT_TRUE(eventually([&] { return journal_count("start u1/main/1") == 1; }));
  EXPECT_EQ(journal_count("signal u1/main/15"), 1);
  EXPECT_EQ(event("Unhealthy"), "Liveness probe failed: stuck");
  EXPECT_EQ(event("Killing"), "Container main failed liveness probe, will be restarted");
  agent_.reset();  // what it asks is on this stack
}

TEST_F(AgentTest, AProbeThatHangsHoldsUpNeitherItsPodNorOthers) {
  runtime_->execute_with(
      [&](std::string_view, const ExecSpec&) { return FakeRuntime::Told{.hangs = true}; });
  start();
  for (int i = 0; i < 10; ++i) {
    create_pod("p" + std::to_string(i), "u" + std::to_string(i), "",
               R"(,"livenessProbe":{"exec":{"command":["check"]},"timeoutSeconds":600})");
  }
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(eventually([&] { return phase("p" + std::to_string(i)) == "Running"; }));
  }
  remove_pod("p0", 5);
  EXPECT_TRUE(eventually([&] { return phase("p0") == "gone"; }));
  const auto before = std::chrono::steady_clock::now();
  agent_.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(3));
}

TEST_F(AgentTest, ReadinessAndItsProbesWaitForTheHookOfTheStart) {
  std::atomic_bool may_end = false;
  std::atomic_int probes = 0;
  runtime_->execute_with([&](std::string_view, const ExecSpec& spec) {
    if (spec.argv.at(0) == "probe") ++probes;
    while (spec.argv.at(0) == "hook" && !may_end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return FakeRuntime::Told{};
  });
  start();
  create_pod("p", "u1", "",
             R"(,"lifecycle":{"postStart":{"exec":{"command":["hook"]}}},
                 "readinessProbe":{"exec":{"command":["probe"]}})");
  EXPECT_TRUE(eventually([&] { return journal_count("exec u1/main/hook") == 1; }));
  create_pod("q", "u2");
  EXPECT_TRUE(eventually([&] { return phase("q") == "Running"; }));
  EXPECT_EQ(phase("p"), "Pending");
  EXPECT_EQ(waiting("p"), "ContainerCreating");
  EXPECT_EQ(probes, 0);
  may_end = true;
  EXPECT_TRUE(eventually([&] {
    const auto pod = client_.get(kPods, "default", "p");
    return pod && api::condition_true(*pod, "Ready");
  }));
  EXPECT_EQ(journal_count("exec u1/main/hook"), 1);
  agent_.reset();  // what it asks is on this stack
}

TEST_F(AgentTest, AFailedHookOfTheStartRestartsTheContainer) {
  std::atomic_int asked = 0;
  runtime_->execute_with([&](std::string_view, const ExecSpec&) {
    return FakeRuntime::Told{.exit_code = asked++ == 0 ? 1 : 0, .output = "secret"};
  });
  start();
  create_pod("p", "u1", R"(,"restartPolicy":"OnFailure")",
             R"(,"lifecycle":{"postStart":{"exec":{"command":["hook"]}}})");
  EXPECT_TRUE(eventually([&] { return phase("p") == "Running"; }));
  EXPECT_EQ(journal_count("start u1/main/1"), 1);
  EXPECT_EQ(journal_count("signal u1/main/15"), 1);
  EXPECT_EQ(event("FailedPostStartHook"), "PostStartHook failed");
  EXPECT_EQ(event("Killing"), "FailedPostStartHook");
  agent_.reset();  // what it asks is on this stack
}

TEST_F(AgentTest, TheHookBeforeTheEndGoesBeforeTheSignal) {
  runtime_->execute_with(
      [&](std::string_view, const ExecSpec&) { return FakeRuntime::Told{.exit_code = 1}; });
  start();
  create_pod("p", "u1", "", R"(,"lifecycle":{"preStop":{"exec":{"command":["hook"]}}})");
  EXPECT_TRUE(eventually([&] { return phase("p") == "Running"; }));
  EXPECT_EQ(journal_count("exec u1/main/hook"), 0);
  remove_pod("p", 30);
  EXPECT_TRUE(eventually([&] { return phase("p") == "gone"; }));
  const auto journal = runtime_->journal();
  const auto hook = std::find(journal.begin(), journal.end(), "exec u1/main/hook");
  const auto term = std::find(journal.begin(), journal.end(), "signal u1/main/15");
  ASSERT_NE(term, journal.end());
  EXPECT_LT(hook, term);
  EXPECT_EQ(event("FailedPreStopHook"), "PreStopHook failed");
  EXPECT_EQ(journal_count("signal u1/main/9"), 0);
}

TEST_F(AgentTest, AHookThatHangsIsGivenUpWithItsContainerAndWithTheAgent) {
  runtime_->execute_with(
      [&](std::string_view, const ExecSpec&) { return FakeRuntime::Told{.hangs = true}; });
  start();
  const std::string hooks = R"(,"lifecycle":{"preStop":{"exec":{"command":["hook"]}}})";
  create_pod("p", "u1", "", hooks);
  create_pod("q", "u2", "", hooks);
  for (const char* name : {"p", "q"}) {
    EXPECT_TRUE(eventually([&] { return phase(name) == "Running"; }));
  }
  remove_pod("p", 1);
  EXPECT_TRUE(eventually([&] { return phase("p") == "gone"; }));
  EXPECT_EQ(journal_count("signal u1/main/15"), 1);
  remove_pod("q", 600);
  EXPECT_TRUE(eventually([&] { return journal_count("exec u2/main/hook") == 1; }));
  const auto before = std::chrono::steady_clock::now();
  agent_.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(3));
}

}  // namespace
}  // namespace skiff::node
