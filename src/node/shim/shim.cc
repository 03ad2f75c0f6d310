#include "node/shim/shim.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <map>

#include "base/json.h"
#include "base/limits.h"
#include "node/loopback/calls.h"
#include "node/shim/container.h"
#include "node/shim/descriptors.h"
#include "node/shim/exec.h"
#include "node/shim/rootfs.h"
#include "node/shim/wire.h"

namespace skiff::node {
namespace {

// At most this much of one container's output between two looks at everything else.
constexpr std::size_t kDrainBytes = 256 * 1024;
constexpr int kSaveAgainMs = 500;

struct Connection {
  Fd fd = {};
  std::string input = {};
  std::vector<Fd> descriptors = {};  // that came with it
};

class Shim {
 public:
  Result<void> open(const std::string& folder);
  void run();

 private:
  Result<void> isolate();
  Result<void> set_sysctls() const;
  Result<void> listen();
  Result<void> write_name_files() const;
  void watch_fd(int fd);
  void lead_calls(Fd calls);
  void answer_one_call(int fd);
  void on_ready(int fd);
  void accept_one();
  void read_request(int fd);
  // Empty: somebody else answers. `gift` goes with the answer.
  std::string answer(int fd, const std::string& line, Fd& gift);
  Result<void> start(const json::value& request);
  Result<void> signal(const json::value& request);
  Result<void> exec(const json::value& request, const Connection& connection);
  Result<void> attach(const json::value& request, Connection& connection, Fd& input);
  void stop_all();
  void reap();
  void tell_watchers();
  // Whether an end is not on disk yet, which therefore nobody was told.
  bool unsaved() const;
  void save_again();

  PodContext pod_ = {};
  Fd epoll_ = {};
  Fd listener_ = {};
  Fd signals_ = {};
  std::map<int, Connection> connections_ = {};
  std::map<int, Fd> watchers_ = {};
  std::map<int, Fd> calls_ = {};  // of programs that are led
  std::map<std::string, std::unique_ptr<Container>> containers_ = {};
  bool stopping_ = false;
};

Result<void> Shim::open(const std::string& folder) {
  pod_.folder = folder;
  SKIFF_ASSIGN(const std::string text, read_file(folder + "/sandbox.json"));
  SKIFF_ASSIGN(const json::value parsed, json::parse(text));
  SKIFF_ASSIGN(pod_.file, sandbox_from_json(parsed));
  // A file of a newer Skiff: the program was taken back while it ran.
  SKIFF_TRY(known_format(pod_.file));
  epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_.valid()) return os_failure("epoll");
  sigset_t wanted;
  sigemptyset(&wanted);
  sigaddset(&wanted, SIGCHLD);
  // A terminal that closes, or a careless kill, must not end a training; SIGKILL still does.
  for (const int s : {SIGHUP, SIGINT, SIGTERM, SIGPIPE, SIGQUIT, SIGUSR1, SIGUSR2}) {
    ::signal(s, SIG_IGN);
  }
  ::sigprocmask(SIG_BLOCK, &wanted, nullptr);
  signals_.reset(::signalfd(-1, &wanted, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!signals_.valid()) return os_failure("signalfd");
  SKIFF_TRY(write_name_files());
  if (pod_.file.privileged) SKIFF_TRY(isolate());
  if (!pod_.file.privileged && !pod_.file.spec.sysctls.empty()) {
    return fail(Code::kInvalid,
                "without root, pods share the machine's kernel settings: no sysctls");
  }
  if (!pod_.file.cgroup.empty()) pod_.cgroups = Cgroups::detect();
  SKIFF_TRY(listen());
  watch_fd(signals_.get());
  watch_fd(listener_.get());
  return {};
}

Result<void> Shim::write_name_files() const {
  const SandboxSpec& spec = pod_.file.spec;
  for (const char* name : {"/etc", "/state", "/logs", "/tmp"}) {
    SKIFF_TRY(make_folders(pod_.folder + name));
  }
  ::chmod((pod_.folder + "/tmp").c_str(), 01777);
  const std::string etc = pod_.folder + "/etc/";
  if (!spec.hostname.empty()) SKIFF_TRY(write_plain(etc + "hostname", spec.hostname + "\n"));
  if (!spec.hosts.empty()) SKIFF_TRY(write_plain(etc + "hosts", spec.hosts));
  if (!spec.resolv_conf.empty()) SKIFF_TRY(write_plain(etc + "resolv.conf", spec.resolv_conf));
  return {};
}

Result<void> Shim::isolate() {
  (void)write_plain("/proc/self/oom_score_adj", "-999");
  pod_.pid_namespace.reset(::open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC));
  if (!pod_.pid_namespace.valid()) return os_failure("/proc/self/ns/pid");
  int spaces = CLONE_NEWNS | CLONE_NEWIPC;
  if (!pod_.file.spec.host_network) spaces |= CLONE_NEWUTS;
  if (pod_.file.own_network) spaces |= CLONE_NEWNET;
  if (::unshare(spaces) != 0) return os_failure("cannot make the pod's namespaces");
  // Mounts the machine gets later show up here; ours never show up there.
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0) return os_failure("/");
  const std::string& name = pod_.file.spec.hostname;
  if (!pod_.file.spec.host_network && !name.empty()) {
    if (::sethostname(name.data(), name.size()) != 0) return os_failure("hostname");
  }
  if (pod_.file.own_network) {
    // The namespace is the pod's alone: any user in it may take any port and may ping.
    (void)write_plain("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0");
    (void)write_plain("/proc/sys/net/ipv4/ping_group_range", "0 2147483647");
  }
  SKIFF_TRY(set_sysctls());
  return mount_machine_root(pod_.folder);
}

Result<void> Shim::set_sysctls() const {
  for (const auto& [name, value] : pod_.file.spec.sysctls) {
    if (name.starts_with("net.") && !pod_.file.own_network) {
      return fail(Code::kInvalid, "sysctl " + name +
                                      " needs a network of the pod's own, and without root pods "
                                      "share the machine's");
    }
    std::string path = "/proc/sys/" + name;
    std::replace(path.begin(), path.end(), '.', '/');
    if (auto written = write_plain(path, value); !written) {
      return fail(Code::kInvalid, fmt::format("sysctl {} cannot be \"{}\": {}", name, value,
                                              written.error().message));
    }
  }
  return {};
}

Result<void> Shim::listen() {
  // Relative, because a socket's path may have no more than 107 bytes.
  if (::chdir(pod_.folder.c_str()) != 0) return os_failure(pod_.folder);
  ::unlink("shim.sock");
  listener_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = "shim.sock"};
  const mode_t old_mask = ::umask(0177);
  const bool bound =
      listener_.valid() &&
      ::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
      ::listen(listener_.get(), 64) == 0;
  ::umask(old_mask);
  if (!bound) return os_failure("cannot listen in " + pod_.folder);
  return {};
}

void Shim::watch_fd(int fd) {
  epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
}

void Shim::lead_calls(Fd calls) {
  if (!calls.valid()) return;
  const int number = calls.get();
  calls_[number] = std::move(calls);
  watch_fd(number);
}

void Shim::answer_one_call(int fd) {
  const std::uint32_t ip = parse_ip(pod_.file.ip).value_or(0);
  const auto listens = [ip](std::uint16_t port) {
    for (const char* sockets :
         {"/proc/net/tcp", "/proc/net/tcp6", "/proc/net/udp", "/proc/net/udp6"}) {
      if (is_taken(read_file(sockets).value_or(""), ip, port)) return true;
    }
    return false;
  };
  const auto table = [this] { return read_table(read_file(pod_.file.led).value_or("")); };
  if (!answer_call(fd, {.ip = ip, .listens = listens, .table = table})) calls_.erase(fd);
}

void Shim::run() {
  while (!stopping_) {
    epoll_event events[32];
    const int n = ::epoll_wait(epoll_.get(), events, 32, unsaved() ? kSaveAgainMs : -1);
    for (int i = 0; i < n && !stopping_; ++i) on_ready(events[i].data.fd);
    if (n == 0) save_again();
  }
}

void Shim::on_ready(int fd) {
  if (fd == signals_.get()) return reap();
  if (fd == listener_.get()) return accept_one();
  if (connections_.contains(fd)) return read_request(fd);
  if (calls_.contains(fd)) return answer_one_call(fd);
  if (watchers_.contains(fd)) {
    watchers_.erase(fd);  // it never sends anything: this is its end
    return;
  }
  for (auto& [name, container] : containers_) {
    for (LogPipe* pipe : {&container->out(), &container->err()}) {
      if (pipe->fd() == fd) container->drain(*pipe, kDrainBytes);
    }
  }
}

void Shim::accept_one() {
  Fd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd.valid()) return;
  const int number = fd.get();
  connections_[number].fd = std::move(fd);
  watch_fd(number);
}

void Shim::read_request(int fd) {
  Connection& connection = connections_[fd];
  char piece[16 * 1024];
  const ssize_t n = receive_descriptors(fd, piece, connection.descriptors);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0 || connection.input.size() > limits::kRequestBodyBytes) {
    connections_.erase(fd);
    return;
  }
  connection.input.append(piece, static_cast<std::size_t>(n));
  const std::size_t end = connection.input.find('\n');
  if (end == std::string::npos) return;
  const std::string line = connection.input.substr(0, end);
  Fd gift;
  const std::string reply = answer(fd, line, gift);
  if (gift.valid()) {
    const int given = gift.get();
    (void)send_descriptors(fd, reply + "\n", {&given, 1});
  } else if (!reply.empty()) {
    (void)write_all(fd, reply + "\n");
  }
  connections_.erase(fd);
}

std::string Shim::answer(int fd, const std::string& line, Fd& gift) {
  const auto request = json::parse(line);
  if (!request) return R"({"error":"not JSON"})";
  const std::string_view op = json::get_string(*request, {"op"});
  Result<void> done;
  if (op == "start") {
    done = start(*request);
  } else if (op == "signal") {
    done = signal(*request);
  } else if (op == "exec") {
    done = exec(*request, connections_[fd]);
    if (done) return "";
  } else if (op == "attach") {
    done = attach(*request, connections_[fd], gift);
  } else if (op == "socket") {
    // Whoever connects it does so in the pod's network.
    const bool v6 = json::get_bool(*request, {"v6"}).value_or(false);
    gift.reset(::socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!gift.valid()) done = os_failure("cannot make a socket");
  } else if (op == "stop") {
    stop_all();
  } else if (op == "watch") {
    Fd& connection = connections_[fd].fd;
    watchers_[fd] = Fd(connection.release());
  } else {
    done = fail(Code::kBadRequest, fmt::format("unknown op \"{}\"", op));
  }
  if (done) return "{}";
  return json::serialize(
      json::object{{"error", done.error().message}, {"code", static_cast<int>(done.error().code)}});
}

Result<void> Shim::start(const json::value& request) {
  SKIFF_ASSIGN(const ContainerSpec spec, container_from_json(request));
  const std::string record = state_folder(pod_.folder) + "/" + record_name(spec.name, spec.attempt);
  if (::access(record.c_str(), F_OK) == 0) return {};
  const auto before = containers_.find(spec.name);
  if (before != containers_.end() && before->second->running()) {
    return fail(Code::kConflict, fmt::format("attempt {} of container {} is still running",
                                             before->second->record().attempt, spec.name));
  }
  SKIFF_ASSIGN(auto container, Container::start(pod_, spec));
  if (container->running()) {
    watch_fd(container->out().fd());
    if (container->err().fd() >= 0) watch_fd(container->err().fd());
  }
  lead_calls(container->take_calls());
  containers_[spec.name] = std::move(container);
  tell_watchers();
  return {};
}

Result<void> Shim::signal(const json::value& request) {
  const std::string_view name = json::get_string(request, {"container"});
  const auto found = containers_.find(std::string(name));
  if (found == containers_.end()) {
    return fail(Code::kNotFound, fmt::format("the pod has no container \"{}\"", name));
  }
  const auto number = json::get_int(request, {"signal"}).value_or(0);
  if (number <= 0 || number >= NSIG) return fail(Code::kBadRequest, "there is no such signal");
  found->second->signal(static_cast<int>(number));
  return {};
}

Result<void> Shim::exec(const json::value& request, const Connection& connection) {
  SKIFF_ASSIGN(const ExecSpec spec, exec_from_json(request));
  const auto found = containers_.find(spec.container);
  if (found == containers_.end()) {
    return fail(Code::kNotFound, fmt::format("container {} is not running", spec.container));
  }
  SKIFF_ASSIGN(Fd calls,
               start_exec(pod_, *found->second, spec, connection.fd, connection.descriptors));
  lead_calls(std::move(calls));
  return {};
}

Result<void> Shim::attach(const json::value& request, Connection& connection, Fd& input) {
  const std::string name(json::get_string(request, {"container"}));
  const auto found = containers_.find(name);
  if (found == containers_.end() || !found->second->running()) {
    return fail(Code::kNotFound, fmt::format("container {} is not running", name));
  }
  if (connection.descriptors.size() != 2) {
    return fail(Code::kBadRequest, "attach needs two descriptors");
  }
  found->second->out().copy_to(std::move(connection.descriptors[0]));
  found->second->err().copy_to(std::move(connection.descriptors[1]));
  if (json::get_bool(request, {"stdin"}).value_or(false)) input = found->second->take_input();
  return {};
}

void Shim::stop_all() {
  for (auto& [name, container] : containers_) {
    if (!container->running()) continue;
    container->signal(SIGKILL);
    int status = 0;
    while (::waitpid(container->record().pid, &status, 0) < 0 && errno == EINTR) {
    }
    container->finish(status);
  }
  ::unlink("shim.sock");
  stopping_ = true;
}

void Shim::reap() {
  signalfd_siginfo ignored{};
  while (::read(signals_.get(), &ignored, sizeof ignored) > 0) {
  }
  bool changed = false;
  int status = 0;
  for (pid_t pid = 0; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;) {
    for (auto& [name, container] : containers_) {
      if (!container->running() || container->record().pid != pid) continue;
      container->finish(status);
      changed = changed || container->saved();
    }
  }
  if (changed) tell_watchers();
}

bool Shim::unsaved() const {
  return std::ranges::any_of(containers_, [](const auto& c) { return !c.second->saved(); });
}

void Shim::save_again() {
  bool changed = false;
  for (auto& [name, container] : containers_) {
    if (container->saved()) continue;
    container->save();
    changed = changed || container->saved();
  }
  if (changed) tell_watchers();
}

void Shim::tell_watchers() {
  for (auto& [number, fd] : watchers_) {
    // A reader with a full buffer already has a byte to wake up for.
    (void)::send(fd.get(), "\n", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
  }
}

int say(std::string_view sentence, int code) {
  (void)write_all(STDOUT_FILENO, sentence);
  return code;
}

}  // namespace

int run_shim(const std::string& pod_folder) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  ::prctl(PR_SET_NAME, kShimName);
  Shim shim;
  if (const auto opened = shim.open(pod_folder); !opened) return say(opened.error().message, 1);
  (void)say("ready", 0);
  const int null_fd = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int fd : {0, 1, 2}) ::dup2(null_fd, fd);
  ::close(null_fd);
  shim.run();
  return 0;
}

}  // namespace skiff::node
