// A runtime that runs nothing: for tests of the agent and for load. Containers "run" for a set time
// on one timer thread and end with a set code.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "env/env.h"
#include "node/runtime.h"

namespace skiff::node {

class FakeRuntime final : public Runtime {
 public:
  struct Script {
    std::chrono::milliseconds runs_for{0};
    bool forever = false;  // until a signal
    int exit_code = 0;
    bool ignores_term = false;
    bool oom = false;
    std::string start_error = {};    // not empty: the container fails to start
    std::string refuses_start = {};  // not empty: start_container itself is an error
  };
  // What a container does, by pod name, container and attempt; the default runs forever.
  using Director =
      std::function<Script(std::string_view pod, std::string_view container, int attempt)>;

  // What exec() answers; the default ends with 0 and says nothing.
  struct Told {
    int exit_code = 0;
    std::string output = {};
    bool hangs = false;  // until it is given up
  };
  using Executor = std::function<Told(std::string_view pod, const ExecSpec& spec)>;

  // `folder` is where pod_folder() makes folders.
  FakeRuntime(const env::Clock& clock, std::string folder, Director director);
  ~FakeRuntime() override;

  Result<SandboxRecord> start_sandbox(const SandboxSpec& spec) override;
  Result<void> start_container(std::string_view pod_uid, const ContainerSpec& spec) override;
  Result<void> signal(std::string_view pod_uid, std::string_view container, int signal) override;
  Result<std::unique_ptr<ExecSession>> exec(std::string_view pod_uid,
                                            const ExecSpec& spec) override;
  // Its containers say nothing and read nothing.
  Result<int> attach(std::string_view pod_uid, std::string_view container, bool input, int out_fd,
                     int err_fd) override;
  // Of the machine's own network.
  Result<int> open_socket(std::string_view pod_uid, bool v6) override;
  Result<void> lead_services(const std::vector<ServicePort>& ports) override;
  Result<SandboxRecord> inspect(std::string_view pod_uid) override;
  // Half a CPU since it began, and ten million bytes.
  std::vector<std::optional<Reading>> measure(const std::vector<MeasureTarget>& containers,
                                              bool memory) override;
  Result<void> stop_sandbox(std::string_view pod_uid) override;
  Result<void> remove_sandbox(std::string_view pod_uid) override;
  std::vector<std::string> list() override;
  Result<std::string> pod_folder(std::string_view pod_uid) override;
  std::string log_path(std::string_view pod_uid, std::string_view container,
                       int attempt) const override;
  void on_change(std::function<void(std::string pod_uid)> changed) override;

  std::vector<ServicePort> led_services() const;
  // What happened, for tests: "start UID/container/attempt", "signal UID/container/15", ...
  std::vector<std::string> journal() const;
  std::vector<ContainerSpec> started() const;
  std::vector<SandboxSpec> sandboxes() const;
  void execute_with(Executor executor);         // before the agent starts
  void fail_sandboxes(std::string message);     // until called with an empty text
  void refuse_services();                       // as where there is no network for pods
  void lose_sandbox(std::string_view pod_uid);  // as if its shim had been killed

 private:
  struct Pod {
    SandboxRecord record = {};
    std::map<std::string, Script, std::less<>> scripts = {};
  };
  using When = std::chrono::steady_clock::time_point;
  struct Timer {
    std::string uid = {};
    std::string container = {};
    int attempt = 0;
    Script script = {};
  };
  void run_timers();
  // Both with mutex_ held.
  void end(Pod& pod, std::string_view container, int attempt, int exit_code, int signal, bool oom);
  void note(std::string text);

  const env::Clock& clock_;
  const std::string folder_;
  const Director director_;
  Executor executor_ = {};
  std::vector<ServicePort> services_ = {};
  mutable std::mutex mutex_;
  std::condition_variable changed_timers_;
  std::map<std::string, std::unique_ptr<Pod>, std::less<>> pods_ = {};
  std::multimap<When, Timer> timers_ = {};
  std::function<void(std::string)> changed_ = {};
  std::vector<std::string> journal_ = {};
  std::vector<ContainerSpec> started_ = {};
  std::vector<SandboxSpec> sandboxes_ = {};
  std::string sandbox_failure_ = {};
  bool refuses_services_ = false;
  unsigned next_address_ = 2;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace skiff::node
