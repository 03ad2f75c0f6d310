#include "node/rootless/rootless.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/strings.h"
#include "node/net/netlink.h"
#include "node/rootless/records.h"
#include "node/shim/files.h"
#include "node/shim/user.h"

extern char** environ;

namespace skiff::node {
namespace {

constexpr const char* kRecord = "rootless.json";
// Where the network programs answer for name servers that are on the machine's own loopback.
constexpr const char* kPastaNames = "169.254.1.1";
constexpr const char* kSlirpNames = "10.0.2.3";
constexpr int kNetworkPatience_ms = 10'000;

std::optional<std::string> start_time(pid_t pid) {
  const auto stat = read_file(fmt::format("/proc/{}/stat", pid));
  return stat ? parse_start_time(*stat) : std::nullopt;
}

bool alive(const ProcessMark& process) { return start_time(process.pid) == process.started; }

// Of this run of the machine, whoever of it lives.
std::optional<RootlessRecord> read_any_record(const std::string& folder) {
  const auto text = read_file(folder + "/" + kRecord);
  auto record = text ? parse_record(*text) : std::nullopt;
  if (record && record->boot != boot_id()) return {};
  return record;
}

std::optional<RootlessRecord> read_record(const std::string& folder) {
  auto record = read_any_record(folder);
  if (record && !alive(record->holder)) return {};
  return record;
}

std::string find_in_path(std::string_view program) {
  const char* path = std::getenv("PATH");
  for (const std::string_view folder :
       split(fmt::format("{}:/usr/bin:/usr/sbin:/sbin", path == nullptr ? "" : path), ':')) {
    std::string full = fmt::format("{}/{}", folder, program);
    if (!folder.empty() && ::access(full.c_str(), X_OK) == 0) return full;
  }
  return {};
}

// In a session of its own, what it says in `log`; `extra` is its descriptor 3.
Result<pid_t> spawn(std::vector<std::string> words, const std::string& log, int extra = -1) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  // Not ours, which wait for sigwait or are ignored: pasta takes that for a failure.
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ::posix_spawn_file_actions_adddup2(&actions, 1, 2);
  if (extra >= 0) ::posix_spawn_file_actions_adddup2(&actions, extra, 3);
  pid_t pid = 0;
  const int number = ::posix_spawn(&pid, argv[0], &actions, &attributes, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  if (number != 0) {
    return fail(Code::kServiceUnavailable,
                fmt::format("cannot run {}: {}", words[0], std::strerror(number)));
  }
  return pid;
}

bool succeeds(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status == 0;
}

std::string last_line(const std::string& path) {
  const std::string text = read_file(path).value_or("");
  const std::string_view whole = trim(text);
  const std::size_t newline = whole.rfind('\n');
  return std::string(newline == std::string_view::npos ? whole : whole.substr(newline + 1));
}

// Users beside our own need two set-user-id programs and somebody who has granted them.
bool map_many(pid_t pid, const std::string& log) {
  const std::string uid_map = find_in_path("newuidmap"), gid_map = find_in_path("newgidmap");
  if (uid_map.empty() || gid_map.empty()) return false;
  const passwd* entry = ::getpwuid(::getuid());
  const std::string name = entry == nullptr ? "" : entry->pw_name;
  const auto uids = parse_id_range(read_file("/etc/subuid").value_or(""), name, ::getuid());
  const auto gids = parse_id_range(read_file("/etc/subgid").value_or(""), name, ::getuid());
  if (!uids || !gids) return false;
  const auto map = [&](const std::string& program, unsigned own, const IdRange& range) {
    const auto started = spawn({program, std::to_string(pid), "0", std::to_string(own), "1", "1",
                                std::to_string(range.first), std::to_string(range.count)},
                               log);
    return started && succeeds(*started);
  };
  return map(gid_map, ::getgid(), *gids) && map(uid_map, ::getuid(), *uids);
}

Result<void> map_one(pid_t pid) {
  const std::string process = fmt::format("/proc/{}/", pid);
  SKIFF_TRY(write_plain(process + "setgroups", "deny"));
  SKIFF_TRY(write_plain(process + "gid_map", fmt::format("0 {} 1", ::getgid())));
  return write_plain(process + "uid_map", fmt::format("0 {} 1", ::getuid()));
}

// Runs in the child. It ends with its parent until it is told that somebody has written it down.
[[noreturn]] void become_holder(const RootlessOptions& options, int ready, int go) {
  ::setsid();
  const int done = ::unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET) == 0 ? 0 : errno;
  char told = 0;
  if (::write(ready, &done, sizeof done) != sizeof done || done != 0 || ::read(go, &told, 1) != 1) {
    ::_exit(1);
  }
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int fd : {0, 1, 2}) ::dup2(null, fd);
  ::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
  ::execl(options.skiff_binary.c_str(), "skiff", "hold", options.folder.c_str(), nullptr);
  ::_exit(127);
}

// A holder under way; it ends with this object unless it is released.
struct Holder {
  ProcessMark process = {};
  Fd go = {};

  Holder() = default;
  Holder(Holder&&) = default;
  Holder& operator=(Holder&&) = delete;
  ~Holder() {
    if (!go.valid()) return;
    go.reset();
    ::waitpid(process.pid, nullptr, 0);
  }
};

Result<Holder> make_holder(const RootlessOptions& options) {
  int ready[2], go[2];
  if (::pipe2(ready, O_CLOEXEC) != 0) return os_failure("cannot make a pipe");
  Fd ready_read(ready[0]), ready_write(ready[1]);
  if (::pipe2(go, O_CLOEXEC) != 0) return os_failure("cannot make a pipe");
  Fd go_read(go[0]);
  Holder holder;
  holder.go.reset(go[1]);
  holder.process.pid = ::fork();
  if (holder.process.pid == 0) {
    ::close(go[1]);  // else it would keep its own door open
    become_holder(options, ready[1], go[0]);
  }
  if (holder.process.pid < 0) {
    holder.go.reset();
    return os_failure("cannot fork");
  }
  ready_write.reset();
  int problem = 0;
  if (::read(ready_read.get(), &problem, sizeof problem) != sizeof problem) problem = ECHILD;
  if (problem != 0) {
    return fail(Code::kServiceUnavailable,
                fmt::format("this machine gives no user namespaces: {}", std::strerror(problem)));
  }
  holder.process.started = start_time(holder.process.pid).value_or("");
  if (!map_many(holder.process.pid, options.folder + "/newuidmap.log")) {
    SKIFF_TRY(map_one(holder.process.pid));
  }
  return holder;
}

// Pods are not to reach what listens on the machine's own loopback, nor the machine pods unasked.
Result<ProcessMark> start_pasta(const std::string& program, pid_t holder,
                                const std::string& folder) {
  const std::string log = folder + "/pasta.log", pid_file = folder + "/pasta.pid";
  SKIFF_ASSIGN(const pid_t starter,
               spawn({program, "--config-net", "--quiet", "--no-map-gw", "-t", "none", "-u", "none",
                      "-T", "none", "-U", "none", "--dns-forward", kPastaNames, "-P", pid_file,
                      std::to_string(holder)},
                     log));
  // It goes on behind when the network is ready.
  if (!succeeds(starter)) {
    return fail(Code::kServiceUnavailable, "pasta: " + last_line(log));
  }
  ProcessMark out{.pid = std::atoi(read_file(pid_file).value_or("0").c_str())};
  const auto started = out.pid > 1 ? start_time(out.pid) : std::nullopt;
  if (!started) return fail(Code::kServiceUnavailable, "pasta ended at once");
  out.started = *started;
  return out;
}

Result<ProcessMark> start_slirp(const std::string& program, pid_t holder,
                                const std::string& folder) {
  const std::string log = folder + "/slirp4netns.log";
  int ready[2];
  if (::pipe2(ready, O_CLOEXEC) != 0) return os_failure("cannot make a pipe");
  const Fd ready_read(ready[0]);
  Fd ready_write(ready[1]);
  SKIFF_ASSIGN(const pid_t pid,
               spawn({program, "--configure", "--mtu=65520", "--disable-host-loopback",
                      "--ready-fd=3", std::to_string(holder), "tap0"},
                     log, ready[1]));
  ready_write.reset();
  pollfd wait{.fd = ready[0], .events = POLLIN, .revents = 0};
  char told = 0;
  const bool well = ::poll(&wait, 1, kNetworkPatience_ms) == 1 && ::read(ready[0], &told, 1) == 1;
  const auto started = start_time(pid);
  if (well && started) return ProcessMark{.pid = pid, .started = *started};
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  return fail(Code::kServiceUnavailable, "slirp4netns: " + last_line(log));
}

// pasta first: it is quicker. slirp4netns also works on a machine without any network.
Result<void> start_network(RootlessRecord& record, const std::string& folder) {
  struct Way {
    const char* name;
    Result<ProcessMark> (*start)(const std::string& program, pid_t holder,
                                 const std::string& folder);
  };
  std::string problems;
  for (const auto& [name, start] : {Way{"pasta", start_pasta}, Way{"slirp4netns", start_slirp}}) {
    const std::string program = find_in_path(name);
    if (program.empty()) continue;
    if (auto started = start(program, record.holder.pid, folder)) {
      record.network = *started;
      record.program = name;
      return {};
    } else {
      problems += (problems.empty() ? "" : "; ") + started.error().message;
    }
  }
  return fail(Code::kServiceUnavailable,
              problems.empty()
                  ? "neither pasta nor slirp4netns is installed (packages passt, slirp4netns)"
                  : problems);
}

Result<void> join(pid_t holder) {
  char* here = ::getcwd(nullptr, 0);
  const std::string folder = here == nullptr ? "/" : here;
  std::free(here);
  std::vector<Fd> spaces;
  for (const char* name : {"user", "mnt", "net"}) {
    spaces.emplace_back(
        ::open(fmt::format("/proc/{}/ns/{}", holder, name).c_str(), O_RDONLY | O_CLOEXEC));
    if (!spaces.back().valid()) return os_failure("cannot find the user namespace");
  }
  for (const Fd& space : spaces) {
    if (::setns(space.get(), 0) != 0) return os_failure("cannot enter the user namespace");
  }
  // A change of mounts forgets where we were.
  if (::chdir(folder.c_str()) != 0) return os_failure(folder);
  // Shims look into each other's /proc, which is closed to whoever changed his rights.
  ::prctl(PR_SET_DUMPABLE, 1);
  return {};
}

// Name servers on the machine's loopback are asked by the network program.
Result<void> lead_names(const RootlessRecord& record, const std::string& folder) {
  const std::string text = read_file("/etc/resolv.conf").value_or("");
  if (!only_loopback_servers(text)) return {};
  const std::string own = folder + "/resolv.conf";
  SKIFF_TRY(write_plain(
      own, fmt::format("nameserver {}\n", record.program == "pasta" ? kPastaNames : kSlirpNames)));
  if (::mount(own.c_str(), "/etc/resolv.conf", nullptr, MS_BIND, nullptr) != 0) {
    return os_failure("/etc/resolv.conf");
  }
  return {};
}

Result<void> bring_up_loopback() {
  SKIFF_ASSIGN(Netlink link, Netlink::open());
  SKIFF_ASSIGN(const int loopback, link.find_link("lo"));
  return link.set_up(loopback);
}

void end(const ProcessMark& process) {
  if (alive(process)) ::kill(process.pid, SIGKILL);
  ::waitpid(process.pid, nullptr, WNOHANG);
}

Result<RootlessRecord> make(const RootlessOptions& options) {
  SKIFF_ASSIGN(Holder holder, make_holder(options));
  RootlessRecord record{.boot = boot_id(), .holder = holder.process};
  SKIFF_TRY(start_network(record, options.folder));
  if (const auto kept = replace_file(options.folder, kRecord, to_text(record)); !kept) {
    end(record.network);
    return std::unexpected(kept.error());
  }
  const char go = 'g';
  if (::write(holder.go.get(), &go, 1) != 1) return os_failure("the holder has ended");
  holder.go.release();
  return record;
}

Result<void> restart_network(RootlessRecord& record, const std::string& folder) {
  SKIFF_TRY(start_network(record, folder));
  const auto kept = replace_file(folder, kRecord, to_text(record));
  if (!kept) end(record.network);
  return kept;
}

}  // namespace

Result<RootlessStory> enter_rootless(const RootlessOptions& options) {
  std::optional<RootlessRecord> record = read_record(options.folder);
  RootlessStory story;
  if (!record) {
    end_rootless_rest(options.folder);
    SKIFF_ASSIGN(record, make(options));
  } else if (!alive(record->network)) {
    // Pods may be inside: they are not left alone for want of a way out.
    if (const auto mended = restart_network(*record, options.folder); !mended) {
      story.problem = mended.error().message;
    }
  }
  SKIFF_TRY(join(record->holder.pid));
  if (story.problem.empty()) {
    SKIFF_TRY(lead_names(*record, options.folder));
    story.program = record->program;
  }
  SKIFF_TRY(bring_up_loopback());
  story.many_users = !own_user_map().single;
  return story;
}

Result<void> enter_held(const std::string& folder) {
  const auto record = read_record(folder);
  if (!record) return fail(Code::kNotFound, "nobody holds the user namespace of " + folder);
  return join(record->holder.pid);
}

Result<void> enter_for_files(const std::string& folder) {
  SKIFF_ASSIGN(const Holder holder, make_holder({.folder = folder}));
  return join(holder.process.pid);
}

bool rootless_lives(const std::string& folder) { return read_record(folder).has_value(); }

void end_rootless(const std::string& folder) {
  const auto record = read_any_record(folder);
  if (!record) return;
  end(record->network);
  end(record->holder);
  ::unlink((folder + "/" + kRecord).c_str());
}

void end_rootless_rest(const std::string& folder) {
  const auto record = read_any_record(folder);
  if (!record || alive(record->holder)) return;
  end(record->network);
  ::unlink((folder + "/" + kRecord).c_str());
}

int hold_main(int, char**) {
  // It ends by SIGKILL only, or with the machine.
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  ::prctl(PR_SET_NAME, "skiff-hold");
  while (true) ::pause();
}

}  // namespace skiff::node
