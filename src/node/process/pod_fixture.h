// A runtime in a folder of its own, for tests; what it made is gone afterwards.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include "node/net/addresses.h"
#include "node/process/process.h"
#include "node/process/shim_link.h"
#include "node/shim/files.h"

namespace skiff::node {

class PodFixture : public ::testing::Test {
 protected:
  virtual bool privileged() const { return true; }

  void SetUp() override {
    folder_ = ::testing::TempDir() + "skiff-pods-" + tag();
    std::filesystem::create_directories(folder_);
    options_.pods_folder = folder_ + "/pods";
    options_.skiff_binary = std::filesystem::read_symlink("/proc/self/exe");
    options_.bridge = "skt" + std::to_string(::getpid());
    options_.privileged = privileged();
    options_.egress = false;
    const auto subnet = pick_subnet(default_subnets(), options_.bridge);
    ASSERT_TRUE(subnet) << subnet.error().message;
    options_.subnet = *subnet;
    restart_runtime();
  }

  void TearDown() override {
    if (!runtime_) return;  // SetUp said why
    for (const std::string& uid : runtime_->list()) {
      const auto removed = runtime_->remove_sandbox(uid);
      EXPECT_TRUE(removed) << removed.error().message;
    }
    runtime_.reset();
    if (privileged()) EXPECT_TRUE(release_network(options_));
    std::filesystem::remove_all(folder_);
  }

  static std::string tag() { return std::to_string(::getpid()); }
  Runtime& runtime() { return *runtime_; }
  const ProcessOptions& options() const { return options_; }
  const std::string& folder() const { return folder_; }

  // As if Skiff had been killed and started again: pods live on.
  void restart_runtime() {
    runtime_.reset();
    runtime_ = make_process_runtime(options_);
    runtime_->on_change([this](std::string) {
      const std::lock_guard lock(mutex_);
      ++changes_;
      changed_.notify_all();
    });
  }

  SandboxRecord start_pod(const std::string& uid, SandboxSpec spec = {}) {
    spec.pod_uid = uid;
    if (spec.hostname.empty()) spec.hostname = uid;
    auto made = runtime_->start_sandbox(spec);
    EXPECT_TRUE(made) << made.error().message;
    return made ? *made : SandboxRecord{};
  }

  ContainerRecord run(const std::string& uid, const ContainerSpec& spec) {
    const auto started = runtime_->start_container(uid, spec);
    EXPECT_TRUE(started) << started.error().message;
    return wait_exit(uid, spec.name);
  }

  // Waits for the runtime's own word, never by polling.
  ContainerRecord wait_exit(const std::string& uid, const std::string& name) {
    std::unique_lock lock(mutex_);
    for (int round = 0; round < 200; ++round) {
      const int seen = changes_;
      lock.unlock();
      const auto sandbox = runtime_->inspect(uid);
      lock.lock();
      EXPECT_TRUE(sandbox);
      for (const ContainerRecord& c : sandbox->containers) {
        if (c.name == name && c.state != ContainerState::kRunning) return c;
      }
      if (!changed_.wait_for(lock, std::chrono::minutes(1), [&] { return changes_ != seen; })) {
        break;
      }
    }
    ADD_FAILURE() << "container " << name << " did not end";
    return {};
  }

  std::string logs(const std::string& uid, const std::string& name, int attempt = 0) {
    const auto text = read_file(runtime_->log_path(uid, name, attempt));
    return text ? *text : std::string();
  }

  void wait_log(const std::string& uid, const std::string& name, const std::string& text) {
    for (int i = 0; i < 12'000 && logs(uid, name).find(text) == std::string::npos; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    EXPECT_NE(logs(uid, name).find(text), std::string::npos) << "never printed: " << text;
  }

  // A file in the /tmp that the pod sees.
  void touch_in_pod(const std::string& uid, const std::string& name) {
    const std::string own = privileged() ? *runtime_->pod_folder(uid) + "/tmp/" : "/tmp/";
    std::ofstream(own + name) << "x";
    if (!privileged()) litter_.push_back(own + name);
  }

  void kill_shim(const std::string& uid) {
    const auto connection = connect_shim(*runtime_->pod_folder(uid));
    ASSERT_TRUE(connection);
    const auto pid = shim_pid(*connection);
    ASSERT_TRUE(pid);
    ASSERT_GT(*pid, 1);
    ::kill(*pid, SIGKILL);
  }

  // Living processes with `argument` as one of their arguments.
  static int processes_named(const std::string& argument) {
    int count = 0;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
      const auto line = read_file(entry.path().native() + "/cmdline");
      if (!line) continue;
      if ((std::string(1, '\0') + *line).find('\0' + argument + '\0') != std::string::npos) ++count;
    }
    return count;
  }

  ~PodFixture() override {
    for (const std::string& path : litter_) std::filesystem::remove(path);
  }

 private:
  std::string folder_ = {};
  ProcessOptions options_ = {};
  std::mutex mutex_;
  std::condition_variable changed_;
  int changes_ = 0;
  std::vector<std::string> litter_ = {};
  std::unique_ptr<Runtime> runtime_ = {};
};

}  // namespace skiff::node
