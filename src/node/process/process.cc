#include "node/process/process.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <mutex>
#include <set>

#include "base/check.h"
#include "base/strings.h"
#include "node/cgroup/cgroup.h"
#include "node/loopback/calls.h"
#include "node/net/addresses.h"
#include "node/net/pod_network.h"
#include "node/process/exec_link.h"
#include "node/process/nursery.h"
#include "node/process/shim_link.h"
#include "node/shim/files.h"
#include "node/shim/wire.h"
#include "node/usage/readings.h"

namespace skiff::node {
namespace {

using std::chrono::milliseconds;

// Longer than a shim waits for the mounts of a container.
constexpr milliseconds kStartPatience{40'000};
constexpr milliseconds kPatience{10'000};
constexpr int kKilled = 137;
// Pods without a network of their own are told apart by these.
constexpr std::uint32_t kLoopbackPods = 127U << 24 | 64U << 16;

// FNV-1a: the same on every start, which is all that names need.
std::uint64_t hash(std::string_view text) {
  std::uint64_t h = 14'695'981'039'346'656'037U;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 1'099'511'628'211U;
  return h;
}

std::string cgroup_name(const ProcessOptions& options) {
  return fmt::format("skiff-{:08x}", hash(options.pods_folder) & 0xffff'ffffU);
}

// One of 64 networks, so that two Skiffs of one machine hardly ever have the same.
Subnet loopback_pods(const ProcessOptions& options) {
  const auto part = static_cast<std::uint32_t>(hash(options.pods_folder) % 64);
  return {.base = kLoopbackPods + (part << 16), .prefix = 16};
}

// What a pod's resolv.conf says, for programs that can only read the machine's. A variable that the
// container has already stays.
void add_name_variables(const std::string& resolv_conf, std::vector<std::string>& env) {
  for (const std::string_view line : split(resolv_conf, '\n')) {
    for (const auto& [word, name] :
         {std::pair<std::string_view, std::string>{"search ", "LOCALDOMAIN="},
          {"options ", "RES_OPTIONS="}}) {
      if (!line.starts_with(word)) continue;
      const bool there =
          std::ranges::any_of(env, [&](const auto& e) { return e.starts_with(name); });
      if (!there) env.push_back(name + std::string(line.substr(word.size())));
    }
  }
}

std::string link_name(std::string_view pod_uid) {
  return fmt::format("sk{:012x}", hash(pod_uid) & 0xffff'ffff'ffffU);
}

// Where nothing is mounted, a program finds the file for its progress where it lies.
ContainerSpec pointing_at_sources(ContainerSpec spec) {
  constexpr std::string_view kName = "SKIFF_PROGRESS_FILE=";
  for (std::string& variable : spec.env) {
    if (!variable.starts_with(kName)) continue;
    for (const Mount& mount : spec.mounts) {
      const std::string prefix = std::string(kName) + mount.target + "/";
      if (!variable.starts_with(prefix)) continue;
      variable = std::string(kName) + mount.source + "/" + variable.substr(prefix.size());
    }
  }
  return spec;
}

Result<NetworkOptions> network_options(const ProcessOptions& options) {
  const auto subnet = parse_subnet(options.subnet);
  if (!subnet) {
    return fail(Code::kInvalid, fmt::format("\"{}\" is not an IPv4 network", options.subnet));
  }
  NetworkOptions network{.bridge = options.bridge, .subnet = *subnet, .gateway = subnet->base + 1};
  network.services = parse_subnet(options.services).value_or(Subnet{});
  network.egress = options.egress;
  if (!options.gateway.empty()) {
    const auto gateway = parse_ip(options.gateway);
    if (!gateway) return fail(Code::kInvalid, "the gateway is not an IPv4 address");
    network.gateway = *gateway;
  }
  return network;
}

// Only a socket that is gone or that nobody listens on means a dead shim; any other failure (no
// free descriptor, no memory) is this process's own trouble, and an error.
Result<bool> shim_answers(const std::string& folder) {
  const auto connection = connect_shim(folder);
  if (connection) return true;
  if (connection.error().code == Code::kNotFound) return false;
  return std::unexpected(connection.error());
}

std::string ports_at(const SandboxFile& file) { return file.led.empty() ? "127.0.0.1" : file.ip; }

class ProcessRuntime : public Runtime {
 public:
  explicit ProcessRuntime(ProcessOptions options);
  ~ProcessRuntime() override;

  Result<SandboxRecord> start_sandbox(const SandboxSpec& spec) override;
  Result<void> start_container(std::string_view pod_uid, const ContainerSpec& spec) override;
  Result<void> signal(std::string_view pod_uid, std::string_view container, int signal) override;
  Result<std::unique_ptr<ExecSession>> exec(std::string_view pod_uid,
                                            const ExecSpec& spec) override;
  Result<int> attach(std::string_view pod_uid, std::string_view container, bool input, int out_fd,
                     int err_fd) override;
  Result<int> open_socket(std::string_view pod_uid, bool v6) override;
  Result<void> lead_services(const std::vector<ServicePort>& ports) override;
  Result<SandboxRecord> inspect(std::string_view pod_uid) override;
  std::vector<std::optional<Reading>> measure(const std::vector<MeasureTarget>& containers,
                                              bool memory) override;
  Result<void> stop_sandbox(std::string_view pod_uid) override;
  Result<void> remove_sandbox(std::string_view pod_uid) override;
  std::vector<std::string> list() override;
  Result<std::string> pod_folder(std::string_view pod_uid) override;
  std::string log_path(std::string_view pod_uid, std::string_view container,
                       int attempt) const override;
  void on_change(std::function<void(std::string pod_uid)> changed) override;

 private:
  std::string folder_of(std::string_view pod_uid) const;
  // Nothing where there is no file or, after a power loss, no whole one. An error says nothing
  // about the pod: the file is there but this process cannot read it now, or a newer one wrote it.
  Result<std::optional<SandboxFile>> read_sandbox(std::string_view pod_uid) const;
  Result<std::optional<SandboxFile>> read_any_sandbox(std::string_view pod_uid) const;
  void adopt();
  void set_up_network();
  void set_up_leading();
  Result<void> write_led_table(const std::vector<ServicePort>& ports) const;
  void tell(std::string sentence) const;
  std::string group_of(std::string_view pod_uid) const;
  SandboxFile plan(const SandboxSpec& spec) const;
  Result<std::string> take_address(const SandboxFile& file);
  void release_address(const std::string& ip);
  Result<void> launch(const SandboxFile& file, const std::string& folder);
  Result<void> join_network(const SandboxFile& file, const std::string& folder);
  // What a pod holds outside of its folder and its shim.
  void release_machine(const SandboxFile& file);
  Result<void> end_shim(const std::string& folder);
  // Writes down how the containers of a shim that is gone ended.
  void record_loss(std::string_view pod_uid);
  void heard(const std::string& pod_uid, bool gone);

  const ProcessOptions options_;
  const std::string boot_ = boot_id();
  const bool privileged_;
  const std::string cgroup_;
  Cgroups cgroups_ = {};
  std::optional<NetworkOptions> network_ = {};
  std::mutex services_mutex_ = {};  // one set of rules after another
  std::optional<AddressPool> pool_ = {};
  AddressPool loopback_{loopback_pods(options_)};
  bool leads_ = false;  // calls of pods, by the table of node/loopback
  Nursery nursery_;
  std::atomic<bool> told_mounts_ = false;
  std::mutex loss_mutex_;
  std::mutex changed_mutex_;
  std::function<void(std::string)> changed_ = {};
  std::unique_ptr<ShimWatch> watch_ = {};  // last: its thread uses all of the above
};

ProcessRuntime::ProcessRuntime(ProcessOptions options)
    : options_(std::move(options)),
      privileged_(options_.privileged && ::geteuid() == 0),
      cgroup_(cgroup_name(options_)),
      nursery_(options_.skiff_binary, options_.pods_folder) {
  SKIFF_CHECK(options_.pods_folder.starts_with("/"), "the pods' folder must be absolute");
  (void)make_folders(options_.pods_folder);
  if (privileged_) {
    cgroups_ = Cgroups::detect();
    if (!cgroups_.usable()) tell("pods have no resource limits: no control groups can be written");
    set_up_network();
  } else {
    tell("pods share this machine's network and have no resource limits: Skiff is not root");
    set_up_leading();
  }
  watch_ =
      std::make_unique<ShimWatch>([this](const std::string& uid, bool gone) { heard(uid, gone); });
  adopt();
}

ProcessRuntime::~ProcessRuntime() {
  watch_.reset();
  // Fails while a pod is there, which is right.
  if (cgroups_.usable() && list().empty()) (void)cgroups_.remove(cgroup_);
}

void ProcessRuntime::set_up_network() {
  if (options_.subnet.empty()) return;
  auto network = network_options(options_);
  const Result<void> made =
      network ? ensure_bridge(*network) : Result<void>(std::unexpected(network.error()));
  if (!made) {
    tell(fmt::format("pods share this machine's network: {}", made.error().message));
    return;
  }
  network_ = *network;
  pool_.emplace(network->subnet);
  pool_->hold(format_ip(network->gateway));
  if (services_elsewhere(*network)) {
    tell(fmt::format("cluster IPs are for pods only: {} is routed elsewhere on this machine",
                     format_subnet(network->services)));
  }
  if (!options_.egress) return;
  if (const auto out = ensure_egress(*network); !out) tell(out.error().message);
}

void ProcessRuntime::set_up_leading() {
  if (options_.led_table.empty()) return;
  const auto able = can_lead();
  if (!able) {
    tell("two pods cannot listen on one port, and find no names: " + able.error().message);
    return;
  }
  leads_ = true;
  tell(fmt::format("every pod has an address of {} to listen on, and all ports there",
                   format_subnet(loopback_pods(options_))));
  // Services of before lead where they led until the first look at them.
  const auto before = read_table(read_file(options_.led_table).value_or("")).services;
  if (const auto done = write_led_table(before); !done) tell(done.error().message);
}

Result<void> ProcessRuntime::write_led_table(const std::vector<ServicePort>& ports) const {
  const std::filesystem::path path(options_.led_table);
  return replace_file(path.parent_path(), path.filename(),
                      to_text({.names_port = options_.names_port, .services = ports}));
}

void ProcessRuntime::adopt() {
  for (const std::string& uid : list()) {
    const auto read = read_any_sandbox(uid);
    if (!read || !*read || (*read)->stopped) continue;
    if (const auto known = known_format(**read); !known) tell(known.error().message);
    if (pool_) pool_->hold((*read)->ip);
    loopback_.hold((*read)->ip);
    // A shim that is gone is found out by inspect().
    (void)watch_->add(uid, folder_of(uid));
  }
}

void ProcessRuntime::tell(std::string sentence) const {
  if (options_.tell) options_.tell(std::move(sentence));
}

std::string ProcessRuntime::folder_of(std::string_view pod_uid) const {
  return fmt::format("{}/{}", options_.pods_folder, pod_uid);
}

Result<std::optional<SandboxFile>> ProcessRuntime::read_sandbox(std::string_view pod_uid) const {
  SKIFF_ASSIGN(auto file, read_any_sandbox(pod_uid));
  if (file) SKIFF_TRY(known_format(*file));
  return file;
}

Result<std::optional<SandboxFile>> ProcessRuntime::read_any_sandbox(
    std::string_view pod_uid) const {
  const auto text = read_file(folder_of(pod_uid) + "/sandbox.json");
  if (!text && text.error().code == Code::kNotFound) return std::nullopt;
  if (!text) return std::unexpected(text.error());
  const auto parsed = json::parse(*text);
  if (!parsed) return std::nullopt;
  auto file = sandbox_from_json(*parsed);
  if (!file) return std::nullopt;
  return std::move(*file);
}

std::string ProcessRuntime::group_of(std::string_view pod_uid) const {
  return fmt::format("{}/pod{}", cgroup_, pod_uid);
}

SandboxFile ProcessRuntime::plan(const SandboxSpec& spec) const {
  SandboxFile file{.spec = spec, .boot = boot_, .privileged = privileged_};
  file.own_network = network_.has_value() && !spec.host_network;
  if (cgroups_.usable()) file.cgroup = group_of(spec.pod_uid);
  if (leads_ && !spec.host_network) file.led = options_.led_table;
  return file;
}

Result<std::string> ProcessRuntime::take_address(const SandboxFile& file) {
  if (file.spec.host_network) return options_.node_ip;
  return file.own_network ? pool_->take() : loopback_.take();
}

void ProcessRuntime::release_address(const std::string& ip) {
  if (pool_) pool_->release(ip);
  loopback_.release(ip);
}

Result<SandboxRecord> ProcessRuntime::start_sandbox(const SandboxSpec& spec) {
  SKIFF_ASSIGN(const std::string folder, pod_folder(spec.pod_uid));
  SKIFF_ASSIGN(const auto before, read_sandbox(spec.pod_uid));
  const bool held = before && !before->stopped;
  SKIFF_ASSIGN(const bool answers, shim_answers(folder));
  if (held && answers) {
    // A Skiff that died in the middle may have left the network unfinished.
    SKIFF_TRY(join_network(*before, folder));
    return inspect(spec.pod_uid);
  }
  // One whose file was lost: nobody knows what it holds, and two at once must not be.
  if (answers) SKIFF_TRY(end_shim(folder));
  if (held) {
    record_loss(spec.pod_uid);
    release_machine(*before);
  }
  SandboxFile file = plan(spec);
  if (held && !before->ip.empty()) {
    file.ip = before->ip;
  } else {
    SKIFF_ASSIGN(file.ip, take_address(file));
  }
  if (const auto launched = launch(file, folder); !launched) {
    // One that cannot be reached now stays as it is, and the next try finds it.
    if (!end_shim(folder)) return std::unexpected(launched.error());
    release_machine(file);
    release_address(file.ip);
    file.stopped = true;
    (void)replace_file(folder, "sandbox.json", json::serialize(to_json(file)));
    return std::unexpected(launched.error());
  }
  return SandboxRecord{.pod_uid = spec.pod_uid,
                       .pod_ns = spec.pod_ns,
                       .pod_name = spec.pod_name,
                       .ip = file.ip,
                       .ports_at = ports_at(file),
                       .alive = true,
                       .containers = read_records(folder)};
}

Result<void> ProcessRuntime::launch(const SandboxFile& file, const std::string& folder) {
  SKIFF_TRY(replace_file(folder, "sandbox.json", json::serialize(to_json(file))));
  SKIFF_TRY(nursery_.start_shim(folder));
  SKIFF_TRY(join_network(file, folder));
  return watch_->add(file.spec.pod_uid, folder);
}

Result<void> ProcessRuntime::join_network(const SandboxFile& file, const std::string& folder) {
  if (!file.own_network || !network_) return {};
  SKIFF_ASSIGN(const Fd connection, connect_shim(folder));
  SKIFF_ASSIGN(const pid_t pid, shim_pid(connection));
  const auto ip = parse_ip(file.ip);
  if (!ip) return fail(Code::kInternal, "the pod's address cannot be read");
  return connect_pod(*network_, link_name(file.spec.pod_uid), pid, *ip);
}

Result<void> ProcessRuntime::start_container(std::string_view pod_uid, const ContainerSpec& spec) {
  if (!privileged_ && !spec.mounts.empty() && !told_mounts_.exchange(true)) {
    tell("volumes are not at their mount paths: Skiff is not root");
  }
  SKIFF_ASSIGN(const auto file, read_sandbox(pod_uid));
  if (file) SKIFF_TRY(can_run(file->format, spec));
  ContainerSpec wanted = privileged_ ? spec : pointing_at_sources(spec);
  if (file && !file->led.empty()) add_name_variables(file->spec.resolv_conf, wanted.env);
  json::object request = to_json(wanted);
  request["op"] = "start";
  return ask_shim(folder_of(pod_uid), request, kStartPatience);
}

Result<void> ProcessRuntime::signal(std::string_view pod_uid, std::string_view container,
                                    int number) {
  return ask_shim(folder_of(pod_uid),
                  {{"op", "signal"}, {"container", container}, {"signal", number}}, kPatience);
}

Result<std::unique_ptr<ExecSession>> ProcessRuntime::exec(std::string_view pod_uid,
                                                          const ExecSpec& spec) {
  return exec_in_pod(folder_of(pod_uid), spec);
}

Result<int> ProcessRuntime::attach(std::string_view pod_uid, std::string_view container, bool input,
                                   int out_fd, int err_fd) {
  return attach_in_pod(folder_of(pod_uid), container, input, out_fd, err_fd);
}

Result<void> ProcessRuntime::lead_services(const std::vector<ServicePort>& ports) {
  if (leads_) {
    const std::lock_guard lock(services_mutex_);
    return write_led_table(ports);
  }
  if (!network_) {
    return fail(Code::kNotFound, "pods have no network of their own here");
  }
  const std::lock_guard lock(services_mutex_);
  return node::lead_services(*network_, ports);
}

Result<int> ProcessRuntime::open_socket(std::string_view pod_uid, bool v6) {
  return socket_in_pod(folder_of(pod_uid), v6);
}

Result<SandboxRecord> ProcessRuntime::inspect(std::string_view pod_uid) {
  const std::string folder = folder_of(pod_uid);
  if (::access(folder.c_str(), F_OK) != 0) {
    return fail(Code::kNotFound, fmt::format("there is no pod {} on this machine", pod_uid));
  }
  SandboxRecord record{.pod_uid = std::string(pod_uid)};
  SKIFF_ASSIGN(const auto file, read_sandbox(pod_uid));
  SKIFF_ASSIGN(const bool answers, shim_answers(folder));
  if (!file) {
    // Only its folder was asked for so far, or a power loss took the file; records are synced.
    if (!answers) record_loss(pod_uid);
    record.containers = read_records(folder);
    return record;
  }
  record.pod_ns = file->spec.pod_ns;
  record.pod_name = file->spec.pod_name;
  record.ip = file->ip;
  record.ports_at = ports_at(*file);
  record.alive = !file->stopped && answers;
  if (!record.alive && !file->stopped) record_loss(pod_uid);
  record.containers = read_records(folder);
  return record;
}

std::vector<std::optional<Reading>> ProcessRuntime::measure(
    const std::vector<MeasureTarget>& containers, bool memory) {
  if (!cgroups_.usable()) {
    std::vector<int> pids;
    for (const MeasureTarget& one : containers) pids.push_back(one.pid);
    return read_trees(pids);
  }
  std::vector<std::optional<Reading>> out;
  for (const MeasureTarget& one : containers) {
    const std::string group = fmt::format("{}/{}", group_of(one.pod_uid), one.container);
    out.push_back(read_group(cgroups_, group, memory));
  }
  return out;
}

void ProcessRuntime::record_loss(std::string_view pod_uid) {
  const std::lock_guard lock(loss_mutex_);
  const auto file = read_sandbox(pod_uid);
  if (!file) return;
  const bool same_boot = *file && (*file)->boot == boot_;
  const std::string folder = folder_of(pod_uid);
  for (ContainerRecord& record : read_records(folder)) {
    if (record.state != ContainerState::kRunning) continue;
    // The kernel kills the container when the shim dies, but not in the same instant.
    if (same_boot) (void)wait_for_end(record.pid, milliseconds{500});
    record.state = ContainerState::kExited;
    record.finished_at = wall_clock();
    record.exit_code = kKilled;
    record.signal = SIGKILL;
    record.message = same_boot ? "the pod's shim was killed" : "the machine was restarted";
    (void)write_record(folder, record);
  }
}

Result<void> ProcessRuntime::end_shim(const std::string& folder) {
  const auto connection = connect_shim(folder);
  if (!connection && connection.error().code == Code::kNotFound) return {};
  if (!connection) return std::unexpected(connection.error());
  SKIFF_ASSIGN(const pid_t pid, shim_pid(*connection));
  // Its containers die with it.
  if (!ask_shim(folder, {{"op", "stop"}}, kPatience)) ::kill(pid, SIGKILL);
  (void)wait_for_end(pid, kPatience);
  return {};
}

void ProcessRuntime::release_machine(const SandboxFile& file) {
  if (file.own_network) (void)remove_link(link_name(file.spec.pod_uid));
  if (!file.cgroup.empty()) (void)cgroups_.remove(file.cgroup);
}

Result<void> ProcessRuntime::stop_sandbox(std::string_view pod_uid) {
  const std::string folder = folder_of(pod_uid);
  if (::access(folder.c_str(), F_OK) != 0) return {};
  SKIFF_ASSIGN(auto file, read_sandbox(pod_uid));
  // A file lost with the power: what it described ended with it, but the folder is still full.
  if (!file) file = plan({.pod_uid = std::string(pod_uid)});
  if (file->stopped) return {};
  watch_->remove(file->spec.pod_uid);
  SKIFF_TRY(end_shim(folder));
  record_loss(pod_uid);
  release_machine(*file);
  static const std::set<std::string> kKept = {"logs", "state", "sandbox.json"};
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (!kKept.contains(entry.path().filename())) remove_tree(entry.path());
  }
  file->stopped = true;
  SKIFF_TRY(replace_file(folder, "sandbox.json", json::serialize(to_json(*file))));
  release_address(file->ip);
  return {};
}

Result<void> ProcessRuntime::remove_sandbox(std::string_view pod_uid) {
  SKIFF_TRY(stop_sandbox(pod_uid));
  remove_tree(folder_of(pod_uid));
  return {};
}

std::vector<std::string> ProcessRuntime::list() {
  std::vector<std::string> uids;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(options_.pods_folder, error)) {
    if (entry.is_directory(error)) uids.push_back(entry.path().filename());
  }
  return uids;
}

Result<std::string> ProcessRuntime::pod_folder(std::string_view pod_uid) {
  // It becomes part of paths that are removed with everything in them.
  if (pod_uid.empty() || pod_uid.starts_with('.') || pod_uid.find('/') != pod_uid.npos) {
    return fail(Code::kInvalid, fmt::format("\"{}\" cannot be a pod's uid", pod_uid));
  }
  std::string folder = folder_of(pod_uid);
  SKIFF_TRY(make_folders(folder));
  return folder;
}

std::string ProcessRuntime::log_path(std::string_view pod_uid, std::string_view container,
                                     int attempt) const {
  return log_file(folder_of(pod_uid), container, attempt);
}

void ProcessRuntime::on_change(std::function<void(std::string pod_uid)> changed) {
  const std::lock_guard lock(changed_mutex_);
  changed_ = std::move(changed);
}

void ProcessRuntime::heard(const std::string& pod_uid, bool gone) {
  if (gone) record_loss(pod_uid);
  std::function<void(std::string)> changed;
  {
    const std::lock_guard lock(changed_mutex_);
    changed = changed_;
  }
  if (changed) changed(pod_uid);
}

}  // namespace

std::unique_ptr<Runtime> make_process_runtime(ProcessOptions options) {
  return std::make_unique<ProcessRuntime>(std::move(options));
}

Result<void> release_network(const ProcessOptions& options) {
  // The kernel refuses while a process is inside, which is right.
  if (const Cgroups cgroups = Cgroups::detect(); cgroups.usable()) {
    (void)cgroups.remove(cgroup_name(options));
  }
  if (options.subnet.empty()) return {};
  SKIFF_ASSIGN(const NetworkOptions network, network_options(options));
  return remove_network(network);
}

}  // namespace skiff::node
