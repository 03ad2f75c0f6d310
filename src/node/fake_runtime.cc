#include "node/fake_runtime.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

namespace skiff::node {

namespace {

// Load tests start many thousands of containers: what is kept for tests is bounded.
constexpr std::size_t kJournalEntries = 100'000;

ContainerRecord* find_container_record(SandboxRecord& record, std::string_view name) {
  for (ContainerRecord& container : record.containers) {
    if (container.name == name) return &container;
  }
  return nullptr;
}

std::unexpected<Error> no_pod(std::string_view uid) {
  return fail(Code::kNotFound, fmt::format("no sandbox for pod {}", uid));
}

class FakeExec final : public ExecSession {
 public:
  FakeExec(int exit_code, bool hangs) : exit_code_(exit_code), hangs_(hangs) {}
  int fd() const override { return -1; }
  std::optional<Result<int>> ended() override {
    if (hangs_) return std::nullopt;
    return exit_code_;
  }

 private:
  const int exit_code_;
  const bool hangs_;
};

}  // namespace

FakeRuntime::FakeRuntime(const env::Clock& clock, std::string folder, Director director)
    : clock_(clock),
      folder_(std::move(folder)),
      director_(std::move(director)),
      thread_([this] { run_timers(); }) {}

FakeRuntime::~FakeRuntime() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_timers_.notify_all();
  thread_.join();
}

void FakeRuntime::note(std::string text) {
  if (journal_.size() < kJournalEntries) journal_.push_back(std::move(text));
}

void FakeRuntime::run_timers() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (timers_.empty()) {
      changed_timers_.wait(lock);
      continue;
    }
    const When next = timers_.begin()->first;
    if (std::chrono::steady_clock::now() < next) {
      changed_timers_.wait_until(lock, next);
      continue;
    }
    const Timer timer = std::move(timers_.begin()->second);
    timers_.erase(timers_.begin());
    const auto pod = pods_.find(timer.uid);
    if (pod == pods_.end()) continue;
    end(*pod->second, timer.container, timer.attempt, timer.script.exit_code, 0, timer.script.oom);
    const auto tell = changed_;
    lock.unlock();
    if (tell) tell(timer.uid);
    lock.lock();
  }
}

void FakeRuntime::end(Pod& pod, std::string_view container, int attempt, int exit_code, int signal,
                      bool oom) {
  ContainerRecord* record = find_container_record(pod.record, container);
  if (record == nullptr || record->attempt != attempt) return;
  if (record->state != ContainerState::kRunning) return;
  record->state = ContainerState::kExited;
  record->finished_at = clock_.now();
  record->exit_code = exit_code;
  record->signal = signal;
  record->oom_killed = oom;
}

Result<SandboxRecord> FakeRuntime::start_sandbox(const SandboxSpec& spec) {
  const std::lock_guard lock(mutex_);
  if (!sandbox_failure_.empty()) return fail(Code::kInternal, sandbox_failure_);
  auto& pod = pods_[spec.pod_uid];
  if (pod && pod->record.alive) return pod->record;
  note("sandbox " + spec.pod_uid);
  sandboxes_.push_back(spec);
  pod = std::make_unique<Pod>();
  const unsigned n = next_address_++;
  pod->record = {.pod_uid = spec.pod_uid,
                 .pod_ns = spec.pod_ns,
                 .pod_name = spec.pod_name,
                 .ip = fmt::format("10.{}.{}.{}", 64 + n / 65536 % 64, n / 256 % 256, n % 256),
                 .alive = true};
  return pod->record;
}

Result<void> FakeRuntime::start_container(std::string_view pod_uid, const ContainerSpec& spec) {
  std::function<void(std::string)> tell;
  {
    const std::lock_guard lock(mutex_);
    const auto found = pods_.find(pod_uid);
    if (found == pods_.end() || !found->second->record.alive) return no_pod(pod_uid);
    Pod& pod = *found->second;
    ContainerRecord* record = find_container_record(pod.record, spec.name);
    if (record != nullptr && record->attempt >= spec.attempt) return {};
    const Script script = director_ ? director_(pod.record.pod_name, spec.name, spec.attempt)
                                    : Script{.forever = true};
    if (!script.refuses_start.empty()) return fail(Code::kInternal, script.refuses_start);
    note(fmt::format("start {}/{}/{}", pod_uid, spec.name, spec.attempt));
    if (started_.size() < kJournalEntries) started_.push_back(spec);
    if (record == nullptr) record = &pod.record.containers.emplace_back();
    *record = {.name = spec.name, .attempt = spec.attempt, .pid = 1, .started_at = clock_.now()};
    pod.scripts[spec.name] = script;
    if (!script.start_error.empty()) {
      record->state = ContainerState::kFailedToStart;
      record->finished_at = clock_.now();
      record->message = script.start_error;
    } else if (!script.forever) {
      timers_.emplace(std::chrono::steady_clock::now() + script.runs_for,
                      Timer{std::string(pod_uid), spec.name, spec.attempt, script});
    }
    tell = changed_;
  }
  changed_timers_.notify_all();
  if (tell) tell(std::string(pod_uid));
  return {};
}

Result<void> FakeRuntime::signal(std::string_view pod_uid, std::string_view container, int number) {
  std::function<void(std::string)> tell;
  {
    const std::lock_guard lock(mutex_);
    const auto found = pods_.find(pod_uid);
    if (found == pods_.end()) return no_pod(pod_uid);
    note(fmt::format("signal {}/{}/{}", pod_uid, container, number));
    ContainerRecord* record = find_container_record(found->second->record, container);
    if (record == nullptr) return fail(Code::kNotFound, "no such container");
    if (number == SIGTERM && found->second->scripts[record->name].ignores_term) return {};
    end(*found->second, container, record->attempt, 128 + number, number, false);
    tell = changed_;
  }
  if (tell) tell(std::string(pod_uid));
  return {};
}

Result<std::unique_ptr<ExecSession>> FakeRuntime::exec(std::string_view pod_uid,
                                                       const ExecSpec& spec) {
  std::string pod;
  {
    const std::lock_guard lock(mutex_);
    const auto found = pods_.find(pod_uid);
    if (found == pods_.end()) return no_pod(pod_uid);
    const ContainerRecord* record = find_container_record(found->second->record, spec.container);
    if (record == nullptr || record->state != ContainerState::kRunning) {
      return fail(Code::kNotFound, fmt::format("container {} is not running", spec.container));
    }
    pod = found->second->record.pod_name;
    note(fmt::format("exec {}/{}/{}", pod_uid, spec.container, fmt::join(spec.argv, " ")));
  }
  const Told told = executor_ ? executor_(pod, spec) : Told{};
  if (spec.out_fd >= 0) (void)!::write(spec.out_fd, told.output.data(), told.output.size());
  return std::make_unique<FakeExec>(told.exit_code, told.hangs);
}

Result<int> FakeRuntime::attach(std::string_view pod_uid, std::string_view container, bool, int,
                                int) {
  const std::lock_guard lock(mutex_);
  const auto found = pods_.find(pod_uid);
  if (found == pods_.end()) return no_pod(pod_uid);
  const ContainerRecord* record = find_container_record(found->second->record, container);
  if (record == nullptr || record->state != ContainerState::kRunning) {
    return fail(Code::kNotFound, fmt::format("container {} is not running", container));
  }
  return -1;
}

Result<int> FakeRuntime::open_socket(std::string_view, bool v6) {
  return ::socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

Result<void> FakeRuntime::lead_services(const std::vector<ServicePort>& ports) {
  const std::lock_guard lock(mutex_);
  if (refuses_services_) return fail(Code::kInternal, "no network of its own");
  services_ = ports;
  return {};
}

std::vector<ServicePort> FakeRuntime::led_services() const {
  const std::lock_guard lock(mutex_);
  return services_;
}

Result<SandboxRecord> FakeRuntime::inspect(std::string_view pod_uid) {
  const std::lock_guard lock(mutex_);
  const auto found = pods_.find(pod_uid);
  if (found == pods_.end()) return no_pod(pod_uid);
  return found->second->record;
}

std::vector<std::optional<Reading>> FakeRuntime::measure(
    const std::vector<MeasureTarget>& containers, bool memory) {
  const std::lock_guard lock(mutex_);
  std::vector<std::optional<Reading>> out;
  for (const MeasureTarget& one : containers) {
    std::optional<Reading>& reading = out.emplace_back();
    const auto pod = pods_.find(one.pod_uid);
    if (pod == pods_.end()) continue;
    for (const ContainerRecord& record : pod->second->record.containers) {
      if (record.name != one.container || record.state != ContainerState::kRunning) continue;
      const std::chrono::nanoseconds ran = clock_.now() - record.started_at;
      reading = {.cpu_ns = ran.count() / 2, .memory_bytes = memory ? 10'000'000 : 0};
    }
  }
  return out;
}

Result<void> FakeRuntime::stop_sandbox(std::string_view pod_uid) {
  const std::lock_guard lock(mutex_);
  const auto found = pods_.find(pod_uid);
  if (found == pods_.end()) return {};
  note(fmt::format("stop {}", pod_uid));
  SandboxRecord& record = found->second->record;
  for (ContainerRecord& container : record.containers) {
    end(*found->second, container.name, container.attempt, 137, SIGKILL, false);
  }
  record.alive = false;
  return {};
}

Result<void> FakeRuntime::remove_sandbox(std::string_view pod_uid) {
  const std::lock_guard lock(mutex_);
  note(fmt::format("remove {}", pod_uid));
  if (const auto found = pods_.find(pod_uid); found != pods_.end()) pods_.erase(found);
  std::error_code error;
  std::filesystem::remove_all(folder_ + "/" + std::string(pod_uid), error);
  return {};
}

std::vector<std::string> FakeRuntime::list() {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> out;
  for (const auto& [uid, pod] : pods_) out.push_back(uid);
  return out;
}

Result<std::string> FakeRuntime::pod_folder(std::string_view pod_uid) {
  std::string path = folder_ + "/" + std::string(pod_uid);
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return fail(Code::kInternal, "cannot create " + path + ": " + error.message());
  return path;
}

std::string FakeRuntime::log_path(std::string_view pod_uid, std::string_view container,
                                  int attempt) const {
  return fmt::format("{}/{}/logs/{}/{}.log", folder_, pod_uid, container, attempt);
}

void FakeRuntime::on_change(std::function<void(std::string pod_uid)> changed) {
  const std::lock_guard lock(mutex_);
  changed_ = std::move(changed);
}

std::vector<std::string> FakeRuntime::journal() const {
  const std::lock_guard lock(mutex_);
  return journal_;
}

std::vector<ContainerSpec> FakeRuntime::started() const {
  const std::lock_guard lock(mutex_);
  return started_;
}

std::vector<SandboxSpec> FakeRuntime::sandboxes() const {
  const std::lock_guard lock(mutex_);
  return sandboxes_;
}

void FakeRuntime::execute_with(Executor executor) { executor_ = std::move(executor); }

void FakeRuntime::fail_sandboxes(std::string message) {
  const std::lock_guard lock(mutex_);
  sandbox_failure_ = std::move(message);
}

void FakeRuntime::refuse_services() {
  const std::lock_guard lock(mutex_);
  refuses_services_ = true;
}

void FakeRuntime::lose_sandbox(std::string_view pod_uid) {
  std::function<void(std::string)> tell;
  {
    const std::lock_guard lock(mutex_);
    const auto found = pods_.find(pod_uid);
    if (found == pods_.end()) return;
    found->second->record.alive = false;
    tell = changed_;
  }
  if (tell) tell(std::string(pod_uid));
}

}  // namespace skiff::node
