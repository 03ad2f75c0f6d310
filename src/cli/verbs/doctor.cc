// skiff doctor: what this machine lacks and how to mend it.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>

#include "base/strings.h"
#include "cli/printer.h"
#include "cli/verbs/verbs.h"

namespace skiff::cli {
namespace {

enum class Health { kGood, kLimited, kBad };

struct Finding {
  Health health = Health::kGood;
  std::string what = {};
  std::string detail = {};
  std::string remedy = {};
};

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

bool on_path(std::string_view program) {
  const char* path = std::getenv("PATH");
  for (const std::string_view folder : split(path == nullptr ? "" : path, ':')) {
    const std::string full = fmt::format("{}/{}", folder, program);
    if (access(full.c_str(), X_OK) == 0) return true;
  }
  return false;
}

Finding check_user() {
  if (geteuid() == 0)
    return {.what = "user", .detail = "root: pods get namespaces, own addresses and limits"};
  if (on_path("pasta") || on_path("slirp4netns")) {
    return {
        .what = "user",
        .detail = "not root: pods get a user namespace where the machine allows it (see the log)"};
  }
  return {Health::kLimited, "user", "not root: pods share this machine's network and process list",
          "install passt (or slirp4netns), or run as root: sudo skiff up -d"};
}

Finding check_cgroups() {
  if (access("/sys/fs/cgroup/memory/memory.limit_in_bytes", R_OK) == 0 ||
      access("/sys/fs/cgroup/memory", R_OK) == 0) {
    const bool writable = access("/sys/fs/cgroup/memory", W_OK) == 0;
    if (writable) return {.what = "cgroups", .detail = "v1: memory and CPU limits are enforced"};
  }
  const std::string controllers = first_line("/sys/fs/cgroup/cgroup.controllers");
  if (controllers.contains("memory") && access("/sys/fs/cgroup", W_OK) == 0) {
    return {.what = "cgroups", .detail = "v2: memory and CPU limits are enforced"};
  }
  return {Health::kLimited, "cgroups", "none that we may write: limits are not enforced",
          "run as root"};
}

Finding check_filesystems() {
  std::ifstream file("/proc/filesystems");
  std::string line;
  while (std::getline(file, line)) {
    if (line.ends_with("overlay"))
      return {.what = "overlayfs", .detail = "there: a pod's writes stay its own"};
  }
  return {Health::kLimited, "overlayfs",
          "not in /proc/filesystems: pods see the machine's files read-only", "modprobe overlay"};
}

Finding check_inotify() {
  const long instances = std::atol(first_line("/proc/sys/fs/inotify/max_user_instances").c_str());
  if (instances >= 128)
    return {.what = "inotify", .detail = fmt::format("{} instances", instances)};
  return {Health::kLimited, "inotify",
          fmt::format("only {} instances: following many logs may fail", instances),
          "sysctl fs.inotify.max_user_instances=512"};
}

Finding check_files() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_max >= 4096)
    return {.what = "open files", .detail = fmt::format("{}", limit.rlim_max)};
  return {Health::kLimited, "open files", fmt::format("at most {}", limit.rlim_max),
          "ulimit -n 65536"};
}

std::string existing_parent(std::string path) {
  while (!path.empty() && access(path.c_str(), F_OK) != 0)
    path = std::filesystem::path(path).parent_path();
  return path.empty() ? "/" : path;
}

Finding check_space(const std::string& data) {
  struct statvfs fs{};
  statvfs(existing_parent(data).c_str(), &fs);
  const double gigabytes =
      static_cast<double>(fs.f_bavail) * static_cast<double>(fs.f_frsize) / 1e9;
  const std::string detail = fmt::format("{:.1f} GB free for {}", gigabytes, data);
  if (gigabytes > 1) return {.what = "disk", .detail = detail};
  return {Health::kBad, "disk", detail, "free some space, or choose another folder with --data"};
}

// The floor under every durable write.
Finding check_sync(const std::string& data) {
  const std::string path = existing_parent(data) + "/.skiff-doctor-" + std::to_string(getpid());
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0)
    return {Health::kBad, "disk sync", "cannot write " + path,
            "choose a folder of yours with --data"};
  std::vector<double> times;
  for (int i = 0; i < 9; ++i) {
    const auto start = std::chrono::steady_clock::now();
    if (write(fd, "skiff", 5) != 5 || fdatasync(fd) != 0) break;
    times.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
            .count());
  }
  close(fd);
  unlink(path.c_str());
  if (times.empty()) return {Health::kBad, "disk sync", "writing fails", "look at dmesg"};
  std::ranges::sort(times);
  const double median = times[times.size() / 2];
  const std::string detail = fmt::format("{:.2f} ms for one durable write", median);
  if (median < 10) return {.what = "disk sync", .detail = detail};
  return {Health::kLimited, "disk sync", detail, "a local SSD makes every write quicker"};
}

Finding check_program(const char* name, const char* use, const char* remedy) {
  if (on_path(name)) return {.what = name, .detail = "there"};
  return {Health::kLimited, name, fmt::format("not on PATH: {}", use), remedy};
}

int print_findings_json(const std::vector<Finding>& findings) {
  json::array out;
  bool bad = false;
  for (const Finding& finding : findings) {
    bad = bad || finding.health == Health::kBad;
    out.push_back(json::object{{"what", finding.what},
                               {"health", finding.health == Health::kGood      ? "ok"
                                          : finding.health == Health::kLimited ? "limited"
                                                                               : "bad"},
                               {"detail", finding.detail},
                               {"remedy", finding.remedy}});
  }
  fmt::print("{}\n", json::pretty(out));
  return bad ? 1 : 0;
}

int run_doctor(Context& context) {
  const std::string& data = context.globals.data;
  const std::vector<Finding> findings = {
      check_user(),
      check_cgroups(),
      check_filesystems(),
      check_inotify(),
      check_files(),
      check_space(data),
      check_sync(data),
      check_program("python3", "host pods that run Python need it", "apt-get install python3"),
      check_program("nft", "pods cannot reach beyond this machine without it",
                    "apt-get install nftables"),
      check_program("kubectl", "skiff has its own get, apply, logs; kubectl is optional",
                    "install kubectl of any version from 1.25 on")};
  if (context.globals.output == "json") return print_findings_json(findings);
  int bad = 0;
  for (const Finding& finding : findings) {
    const bool colour = context.globals.colour;
    const std::string mark = finding.health == Health::kGood ? paint("ok", Colour::kGreen, colour)
                             : finding.health == Health::kLimited
                                 ? paint("limited", Colour::kYellow, colour)
                                 : paint("bad", Colour::kRed, colour);
    bad += finding.health == Health::kBad ? 1 : 0;
    fmt::print("{:<12} {:<8} {}\n", finding.what, mark, finding.detail);
    if (!finding.remedy.empty()) fmt::print("{:<21} -> {}\n", "", finding.remedy);
  }
  return bad == 0 ? 0 : 1;
}

}  // namespace

void add_doctor(CLI::App& app, Context& context, int& exit_code) {
  app.add_subcommand("doctor", "What this machine lacks and how to mend it")
      ->callback([&context, &exit_code] { exit_code = run_doctor(context); });
}

}  // namespace skiff::cli
