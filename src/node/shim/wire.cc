#include "node/shim/wire.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "node/shim/files.h"

namespace skiff::node {
namespace {

json::array strings_json(const std::vector<std::string>& list) {
  json::array out;
  out.reserve(list.size());
  for (const std::string& s : list) out.emplace_back(s);
  return out;
}

std::string text_at(const json::value& v, std::string_view key) {
  return std::string(json::get_string(v, {key}));
}

int int_at(const json::value& v, std::string_view key) {
  return static_cast<int>(json::get_int(v, {key}).value_or(0));
}

std::optional<int> maybe_int(const json::value& v, std::string_view key) {
  const auto n = json::get_int(v, {key});
  if (!n) return std::nullopt;
  return static_cast<int>(*n);
}

void put_rights(const ContainerSpec& spec, json::object& out) {
  json::array groups;
  for (const int gid : spec.groups) groups.push_back(gid);
  out["groups"] = std::move(groups);
  out["ownGroups"] = spec.own_groups;
  out["capabilities"] = spec.capabilities;
  out["privileged"] = spec.privileged;
  out["noNewPrivileges"] = spec.no_new_privileges;
  out["readOnlyRoot"] = spec.read_only_root;
  out["oomScoreAdj"] = spec.oom_score_adj;
  out["pidsLimit"] = spec.pids_limit;
  if (!spec.gpus) return;
  json::array gpus;
  for (const int minor : *spec.gpus) gpus.push_back(minor);
  out["gpus"] = std::move(gpus);
}

void take_rights(const json::value& v, ContainerSpec& spec) {
  for (const json::value& gid : json::get_array(v, {"groups"})) {
    spec.groups.push_back(static_cast<int>(json::get_int(gid, {}).value_or(0)));
  }
  spec.own_groups = json::get_bool(v, {"ownGroups"}).value_or(true);
  if (const auto mask = json::get_int(v, {"capabilities"})) {
    spec.capabilities = static_cast<Capabilities>(*mask);
  }
  spec.privileged = json::get_bool(v, {"privileged"}).value_or(false);
  spec.no_new_privileges = json::get_bool(v, {"noNewPrivileges"}).value_or(false);
  spec.read_only_root = json::get_bool(v, {"readOnlyRoot"}).value_or(false);
  spec.oom_score_adj = int_at(v, "oomScoreAdj");
  spec.pids_limit = json::get_int(v, {"pidsLimit"}).value_or(0);
  if (json::find(v, {"gpus"}) == nullptr) return;
  spec.gpus.emplace();
  for (const json::value& minor : json::get_array(v, {"gpus"})) {
    spec.gpus->push_back(static_cast<int>(json::get_int(minor, {}).value_or(0)));
  }
}

std::string_view state_name(ContainerState state) {
  switch (state) {
    case ContainerState::kRunning:
      return "running";
    case ContainerState::kExited:
      return "exited";
    case ContainerState::kFailedToStart:
      return "failed-to-start";
  }
  return "running";
}

Result<ContainerState> state_from(std::string_view name) {
  for (const auto state :
       {ContainerState::kRunning, ContainerState::kExited, ContainerState::kFailedToStart}) {
    if (state_name(state) == name) return state;
  }
  return fail(Code::kInternal, fmt::format("a record names the unknown state \"{}\"", name));
}

// Codes travel as numbers: the order of the enumeration is part of the format.
static_assert(static_cast<int>(Code::kBadRequest) == 0 && static_cast<int>(Code::kNotFound) == 3 &&
              static_cast<int>(Code::kConflict) == 7 && static_cast<int>(Code::kTimeout) == 16);

}  // namespace

Result<void> known_format(const SandboxFile& file) {
  if (file.format <= kFormat) return {};
  return fail(Code::kServiceUnavailable,
              fmt::format("pod {} was started by a newer Skiff (format {}, this one knows {}) and "
                          "is left alone: start the newer Skiff again",
                          file.spec.pod_name.empty() ? file.spec.pod_uid : file.spec.pod_name,
                          file.format, kFormat));
}

Result<void> can_run(int format, const ContainerSpec& spec) {
  const ContainerSpec usual;
  const bool memory = std::ranges::any_of(
      spec.mounts, [](const Mount& m) { return m.memory_bytes || !m.inside.empty(); });
  const bool plain = spec.layers.empty() && !spec.uid && !spec.gid && spec.groups.empty() &&
                     spec.own_groups && spec.capabilities == usual.capabilities &&
                     !spec.privileged && !spec.no_new_privileges && !spec.read_only_root &&
                     !spec.tty && !spec.stdin_open && !memory;
  if (format >= 1 || plain) return {};
  return fail(Code::kServiceUnavailable,
              fmt::format("container {} asks for what the pod cannot give it: the pod was started "
                          "by an older Skiff; delete the pod to have it made anew",
                          spec.name));
}

std::optional<Error> answered_error(const json::value& answer) {
  const std::string_view error = json::get_string(answer, {"error"});
  if (error.empty()) return std::nullopt;
  if (error.starts_with("unknown op ")) {
    return Error{.code = Code::kServiceUnavailable,
                 .message = fmt::format("the pod was started by an older Skiff and cannot do this "
                                        "({}); delete the pod to have it made anew",
                                        error)};
  }
  const auto code = json::get_int(answer, {"code"});
  return Error{.code = code ? static_cast<Code>(*code) : Code::kInternal,
               .message = std::string(error)};
}

json::object to_json(const SandboxFile& file) {
  json::object sysctls;
  for (const auto& [name, value] : file.spec.sysctls) sysctls[name] = value;
  return {{"format", file.format},
          {"podUid", file.spec.pod_uid},
          {"podNamespace", file.spec.pod_ns},
          {"podName", file.spec.pod_name},
          {"hostname", file.spec.hostname},
          {"hostNetwork", file.spec.host_network},
          {"resolvConf", file.spec.resolv_conf},
          {"hosts", file.spec.hosts},
          {"masked", strings_json(file.spec.masked)},
          {"sysctls", std::move(sysctls)},
          {"ip", file.ip},
          {"boot", file.boot},
          {"cgroup", file.cgroup},
          {"privileged", file.privileged},
          {"ownNetwork", file.own_network},
          {"stopped", file.stopped},
          {"led", file.led}};
}

Result<SandboxFile> sandbox_from_json(const json::value& v) {
  SandboxFile file{.format = int_at(v, "format"),
                   .spec = {.pod_uid = text_at(v, "podUid"),
                            .pod_ns = text_at(v, "podNamespace"),
                            .pod_name = text_at(v, "podName"),
                            .hostname = text_at(v, "hostname"),
                            .host_network = json::get_bool(v, {"hostNetwork"}).value_or(false),
                            .resolv_conf = text_at(v, "resolvConf"),
                            .hosts = text_at(v, "hosts"),
                            .masked = json::strings(json::get_array(v, {"masked"}))},
                   .ip = text_at(v, "ip"),
                   .boot = text_at(v, "boot"),
                   .cgroup = text_at(v, "cgroup"),
                   .privileged = json::get_bool(v, {"privileged"}).value_or(false),
                   .own_network = json::get_bool(v, {"ownNetwork"}).value_or(false),
                   .stopped = json::get_bool(v, {"stopped"}).value_or(false),
                   .led = text_at(v, "led")};
  if (file.spec.pod_uid.empty()) return fail(Code::kInternal, "a sandbox file names no pod");
  for (const auto& [name, value] : json::get_object(v, {"sysctls"})) {
    file.spec.sysctls.emplace_back(name, json::get_string(value, {}));
  }
  return file;
}

json::object to_json(const ContainerSpec& spec) {
  json::array mounts;
  for (const Mount& m : spec.mounts) {
    json::object mount{{"source", m.source}, {"target", m.target}, {"readOnly", m.read_only}};
    if (m.memory_bytes) mount["memoryBytes"] = *m.memory_bytes;
    if (!m.inside.empty()) mount["inside"] = m.inside;
    mounts.push_back(std::move(mount));
  }
  json::object out{{"name", spec.name},
                   {"attempt", spec.attempt},
                   {"rootfs", spec.rootfs},
                   {"layers", strings_json(spec.layers)},
                   {"argv", strings_json(spec.argv)},
                   {"env", strings_json(spec.env)},
                   {"workingDir", spec.working_dir},
                   {"mounts", std::move(mounts)},
                   {"memoryLimit", spec.memory_limit_bytes},
                   {"cpuLimit", spec.cpu_limit_milli},
                   {"cpuRequest", spec.cpu_request_milli},
                   {"terminationPath", spec.termination_path},
                   {"fallbackToLogs", spec.fallback_to_logs},
                   {"stdin", spec.stdin_open},
                   {"stdinOnce", spec.stdin_once},
                   {"tty", spec.tty}};
  put_rights(spec, out);
  if (spec.uid) out["uid"] = *spec.uid;
  if (spec.gid) out["gid"] = *spec.gid;
  return out;
}

Result<ContainerSpec> container_from_json(const json::value& v) {
  ContainerSpec spec{.name = text_at(v, "name"),
                     .attempt = int_at(v, "attempt"),
                     .rootfs = text_at(v, "rootfs"),
                     .layers = json::strings(json::get_array(v, {"layers"})),
                     .argv = json::strings(json::get_array(v, {"argv"})),
                     .env = json::strings(json::get_array(v, {"env"})),
                     .working_dir = text_at(v, "workingDir"),
                     .uid = maybe_int(v, "uid"),
                     .gid = maybe_int(v, "gid"),
                     .memory_limit_bytes = json::get_int(v, {"memoryLimit"}).value_or(0),
                     .cpu_limit_milli = json::get_int(v, {"cpuLimit"}).value_or(0),
                     .cpu_request_milli = json::get_int(v, {"cpuRequest"}).value_or(0)};
  if (auto path = text_at(v, "terminationPath"); !path.empty()) {
    spec.termination_path = std::move(path);
  }
  spec.fallback_to_logs = json::get_bool(v, {"fallbackToLogs"}).value_or(false);
  spec.stdin_open = json::get_bool(v, {"stdin"}).value_or(false);
  spec.stdin_once = json::get_bool(v, {"stdinOnce"}).value_or(false);
  spec.tty = json::get_bool(v, {"tty"}).value_or(false);
  take_rights(v, spec);
  for (const json::value& m : json::get_array(v, {"mounts"})) {
    spec.mounts.push_back({.source = text_at(m, "source"),
                           .target = text_at(m, "target"),
                           .read_only = json::get_bool(m, {"readOnly"}).value_or(false),
                           .memory_bytes = json::get_int(m, {"memoryBytes"}),
                           .inside = text_at(m, "inside")});
  }
  // The name becomes part of paths.
  if (spec.name.empty() || spec.name.find('/') != std::string::npos || spec.name[0] == '.') {
    return fail(Code::kInvalid, fmt::format("\"{}\" cannot name a container", spec.name));
  }
  return spec;
}

json::object to_json(const ExecSpec& spec) {
  json::object out{{"container", spec.container}, {"argv", strings_json(spec.argv)}};
  if (spec.env) out["env"] = strings_json(*spec.env);
  if (spec.working_dir) out["workingDir"] = *spec.working_dir;
  if (spec.uid) out["uid"] = *spec.uid;
  if (spec.gid) out["gid"] = *spec.gid;
  if (spec.tty) out["tty"] = true;
  return out;
}

Result<ExecSpec> exec_from_json(const json::value& v) {
  ExecSpec spec{.container = text_at(v, "container"),
                .argv = json::strings(json::get_array(v, {"argv"})),
                .uid = maybe_int(v, "uid"),
                .gid = maybe_int(v, "gid"),
                .tty = json::get_bool(v, {"tty"}).value_or(false)};
  if (json::find(v, {"env"}) != nullptr) spec.env = json::strings(json::get_array(v, {"env"}));
  if (json::find(v, {"workingDir"}) != nullptr) spec.working_dir = text_at(v, "workingDir");
  if (spec.argv.empty()) return fail(Code::kInvalid, "there is no command to run");
  return spec;
}

json::object to_json(const ContainerRecord& record) {
  json::object out{{"name", record.name},
                   {"attempt", record.attempt},
                   {"state", state_name(record.state)},
                   {"pid", record.pid},
                   {"startedAt", rfc3339_micro(record.started_at)}};
  if (record.state == ContainerState::kRunning) return out;
  out["finishedAt"] = rfc3339_micro(record.finished_at);
  out["exitCode"] = record.exit_code;
  out["signal"] = record.signal;
  out["oomKilled"] = record.oom_killed;
  out["message"] = record.message;
  return out;
}

Result<ContainerRecord> record_from_json(const json::value& v) {
  SKIFF_ASSIGN(const ContainerState state, state_from(json::get_string(v, {"state"})));
  return ContainerRecord{
      .name = text_at(v, "name"),
      .attempt = int_at(v, "attempt"),
      .state = state,
      .pid = int_at(v, "pid"),
      .started_at = parse_time(json::get_string(v, {"startedAt"})).value_or(Time{}),
      .finished_at = parse_time(json::get_string(v, {"finishedAt"})).value_or(Time{}),
      .exit_code = int_at(v, "exitCode"),
      .signal = int_at(v, "signal"),
      .oom_killed = json::get_bool(v, {"oomKilled"}).value_or(false),
      .message = text_at(v, "message")};
}

std::string socket_path(const std::string& pod_folder) { return pod_folder + "/shim.sock"; }
std::string state_folder(const std::string& pod_folder) { return pod_folder + "/state"; }

std::string record_name(std::string_view container, int attempt) {
  return fmt::format("{}.{}.json", container, attempt);
}

std::string log_file(const std::string& pod_folder, std::string_view container, int attempt) {
  return fmt::format("{}/logs/{}/{}.log", pod_folder, container, attempt);
}

std::vector<ContainerRecord> read_records(const std::string& pod_folder) {
  std::map<std::string, ContainerRecord> newest;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(state_folder(pod_folder), error)) {
    // A name with a leading dot is a write that was cut short.
    if (entry.path().filename().native().starts_with(".")) continue;
    const auto text = read_file(entry.path());
    if (!text) continue;
    const auto parsed = json::parse(*text);
    if (!parsed) continue;
    auto record = record_from_json(*parsed);
    if (!record) continue;
    auto [at, added] = newest.try_emplace(record->name, *record);
    if (!added && at->second.attempt < record->attempt) at->second = std::move(*record);
  }
  std::vector<ContainerRecord> out;
  for (auto& [name, record] : newest) out.push_back(std::move(record));
  return out;
}

Result<void> write_record(const std::string& pod_folder, const ContainerRecord& record) {
  return write_atomically(state_folder(pod_folder), record_name(record.name, record.attempt),
                          json::serialize(to_json(record)));
}

Time wall_clock() {
  return std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now());
}

}  // namespace skiff::node
