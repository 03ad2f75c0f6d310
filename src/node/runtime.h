// How pods become processes. One interface, several ways: `process` (namespaces and cgroups), later
// `oci`; `fake` for load tests.
//
// A pod's sandbox is a small shim process (`skiff shim`) that holds the pod's namespaces, is the
// parent of its containers, drains their output into log files and writes down how they ended. It
// outlives Skiff: a crash or an upgrade stops no training. Everything the runtime knows about a pod
// is in its folder, so a new Skiff finds it again.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "node/capabilities.h"
#include "node/net/service_rules.h"

namespace skiff::node {

struct Mount {
  std::string source = {};  // on this machine; a path without symbolic links
  std::string target = {};  // in the container, absolute
  bool read_only = false;
  // Given: the source is a folder of the pod's on which a file system in memory of this size lies,
  // one for all its containers and gone with its sandbox.
  std::optional<std::int64_t> memory_bytes = {};
  std::string inside = {};  // with memory_bytes: the part of it to mount, made where absent
};

struct SandboxSpec {
  std::string pod_uid = {};
  std::string pod_ns = {};
  std::string pod_name = {};
  std::string hostname = {};
  bool host_network = false;
  std::string resolv_conf = {};          // contents of /etc/resolv.conf; empty: the machine's
  std::string hosts = {};                // contents of /etc/hosts; empty: the machine's
  std::vector<std::string> masked = {};  // folders no container may see (Skiff's data)
  std::vector<std::pair<std::string, std::string>> sysctls = {};  // settings of its own namespaces
};

struct ContainerSpec {
  std::string name = {};
  int attempt = 0;          // 0, 1, 2, ...: one log file and one exit record each
  std::string rootfs = {};  // empty: the machine's own files, writes private to the pod
  std::vector<std::string> layers = {};  // of an image, topmost first; takes the place of rootfs
  std::vector<std::string> argv = {};
  std::vector<std::string> env = {};  // NAME=value
  std::string working_dir = {};
  std::vector<Mount> mounts = {};
  std::optional<int> uid = {};
  std::optional<int> gid = {};
  std::vector<int> groups = {};  // beside that one
  bool own_groups = true;        // and those that the container's /etc/group gives the user
  Capabilities capabilities = kDefaultCapabilities;  // that it may have at all
  bool privileged = false;         // the machine's devices and the kernel's settings are its own
  bool no_new_privileges = false;  // a set-user-id program gives it nothing
  bool read_only_root = false;     // it may write to its volumes only
  int oom_score_adj = 0;
  // The numbers of its NVIDIA GPUs: of the machine's device files for them it sees these only.
  // Absent: nobody counts them here, and it sees all.
  std::optional<std::vector<int>> gpus = {};
  std::int64_t pids_limit =
      0;  // processes and threads; 0: a fair part of what the machine can have
  std::int64_t memory_limit_bytes = 0;  // 0: none
  std::int64_t cpu_limit_milli = 0;
  std::int64_t cpu_request_milli = 0;
  std::string termination_path = "/dev/termination-log";  // where it may write its last words
  bool fallback_to_logs = false;  // a failure without last words takes them from the log
  bool stdin_open = false;        // somebody may attach and write to it
  bool stdin_once = false;        // its input ends with the first who does
  bool tty = false;               // its streams are a terminal
};

enum class ContainerState { kRunning, kExited, kFailedToStart };

struct ContainerRecord {
  std::string name = {};
  int attempt = 0;
  ContainerState state = ContainerState::kRunning;
  int pid = 0;
  Time started_at = {};
  Time finished_at = {};
  int exit_code = 0;  // 128 + signal where a signal ended it
  int signal = 0;
  bool oom_killed = false;
  std::string message = {};  // why it failed to start; else its termination message
};

struct SandboxRecord {
  std::string pod_uid = {};
  std::string pod_ns = {};
  std::string pod_name = {};
  std::string ip = {};
  std::string ports_at = "127.0.0.1";  // where its network finds its ports, for open_socket()
  bool alive = false;                  // the shim is there and answers
  // The newest attempt of each container.
  std::vector<ContainerRecord> containers = {};
};

// A container that runs, to be measured.
struct MeasureTarget {
  std::string pod_uid = {};
  std::string container = {};
  int pid = 0;  // of its record
};

struct Reading {
  std::int64_t cpu_ns = 0;        // used since it began
  std::int64_t memory_bytes = 0;  // the working set: what the kernel could not take back at once
};

// A program to run beside a container's own: in its namespaces, control group and files. What is
// not given is as the container has it.
struct ExecSpec {
  std::string container = {};
  std::vector<std::string> argv = {};
  std::optional<std::vector<std::string>> env = {};  // NAME=value; the whole environment
  std::optional<std::string> working_dir = {};
  std::optional<int> uid = {};
  std::optional<int> gid = {};
  // The program gets copies; the caller keeps its own. -1: /dev/null.
  int in_fd = -1;
  int out_fd = -1;
  int err_fd = -1;
  bool tty = false;  // in_fd is a terminal, and becomes the program's own
};

// A program that exec() began. Destroying it kills the program where it still runs.
class ExecSession {
 public:
  virtual ~ExecSession() = default;
  // Readable once the program has ended; -1: it has.
  virtual int fd() const = 0;
  // Nothing while it runs; then its exit code (128 + signal), or why it could not be run. Never
  // blocks, and gives the end once.
  virtual std::optional<Result<int>> ended() = 0;
};

class Runtime {
 public:
  virtual ~Runtime() = default;

  // Every call may block for milliseconds and may be made from any thread, for different pods at
  // the same time. Calls for one pod come one after another, but for exec(),
  // attach(), open_socket(), lead_services() and measure().

  // Makes the sandbox or finds the living one; the answer has its address.
  virtual Result<SandboxRecord> start_sandbox(const SandboxSpec& spec) = 0;
  // Starts one container. The same attempt again changes nothing.
  virtual Result<void> start_container(std::string_view pod_uid, const ContainerSpec& spec) = 0;
  // To the container's first process; SIGKILL goes to all of its processes.
  virtual Result<void> signal(std::string_view pod_uid, std::string_view container, int signal) = 0;
  // kNotFound where the container does not run. Beside any other call.
  virtual Result<std::unique_ptr<ExecSession>> exec(std::string_view pod_uid,
                                                    const ExecSpec& spec) = 0;
  // What the container says from now on goes to both descriptors, too (copies are made). Returns a
  // descriptor that its program reads from, or -1 where it reads none or `input` is not wanted.
  // kNotFound where it does not run.
  virtual Result<int> attach(std::string_view pod_uid, std::string_view container, bool input,
                             int out_fd, int err_fd) = 0;
  // A new TCP socket in the pod's network. A sandbox from before an upgrade of Skiff may give one
  // for IPv4 where the other was asked for.
  virtual Result<int> open_socket(std::string_view pod_uid, bool v6 = false) = 0;
  // From now on these services, and no others, are reached by their cluster IPs and node ports.
  // kNotFound where this runtime has no network of its own, now and later.
  virtual Result<void> lead_services(const std::vector<ServicePort>& ports) = 0;
  virtual Result<SandboxRecord> inspect(std::string_view pod_uid) = 0;
  // One answer for each; nothing for what has ended or cannot be measured. Beside any other call.
  // Memory only where asked for: it costs most, and unlike CPU time says nothing about earlier.
  virtual std::vector<std::optional<Reading>> measure(const std::vector<MeasureTarget>& containers,
                                                      bool memory) = 0;
  // Kills what is left and removes everything but the log files.
  virtual Result<void> stop_sandbox(std::string_view pod_uid) = 0;
  // Removes the pod's folder, logs included.
  virtual Result<void> remove_sandbox(std::string_view pod_uid) = 0;
  virtual std::vector<std::string> list() = 0;  // uids of all pods that have a folder

  // The pod's own folder for volumes and generated files; exists after start_sandbox, and may be
  // made before it by this call.
  virtual Result<std::string> pod_folder(std::string_view pod_uid) = 0;
  virtual std::string log_path(std::string_view pod_uid, std::string_view container,
                               int attempt) const = 0;

  // `changed` is called, from any thread, when a container of the pod started or ended.
  virtual void on_change(std::function<void(std::string pod_uid)> changed) = 0;
};

}  // namespace skiff::node
