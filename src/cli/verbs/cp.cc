// skiff cp: files and folders into a pod and out of it, by tar on both sides.
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <thread>

#include "cli/file_io.h"
#include "cli/pod_talk.h"
#include "cli/verbs/verbs.h"

extern char** environ;

namespace skiff::cli {
namespace {

namespace fs = std::filesystem;

struct CopyOptions {
  std::string from = {}, to = {}, container = {};
};

// POD:PATH or NAMESPACE/POD:PATH; without a pod it is a path here.
struct Place {
  std::string ns = {}, pod = {}, path = {};
};

Place read_place(const std::string& word, const std::string& ns) {
  const std::size_t colon = word.find(':');
  // "./a:b" and "/a:b" are files.
  if (colon == std::string::npos || word.starts_with('.') || word.starts_with('/')) {
    return {.path = word};
  }
  const std::string pod = word.substr(0, colon);
  const std::size_t slash = pod.find('/');
  Place out{.ns = ns, .pod = pod, .path = word.substr(colon + 1)};
  if (slash != std::string::npos) {
    out.ns = pod.substr(0, slash);
    out.pod = pod.substr(slash + 1);
  }
  return out;
}

struct Split {
  std::string folder = {}, name = {};
};

Result<Split> split_path(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  const fs::path all(path);
  Split out{.folder = all.parent_path().string(), .name = all.filename().string()};
  if (out.folder.empty()) out.folder = ".";
  if (out.name.empty() || out.name == "." || out.name == ".." || path == "/") {
    return fail(Code::kBadRequest, fmt::format("\"{}\" names no file or folder to copy", path));
  }
  return out;
}

// What makes tar call it `to` instead of `from`; empty where they are the same.
std::string renaming(const std::string& from, const std::string& to) {
  if (from == to) return "";
  const auto escaped = [](std::string_view text, std::string_view special) {
    std::string out;
    for (const char c : text) {
      if (special.find(c) != special.npos) out += '\\';
      out += c;
    }
    return out;
  };
  // Not in the targets of symbolic links (flags S and H).
  return fmt::format("--transform=s|^\\./{}|./{}|SH", escaped(from, R"(\.[]*^$|)"),
                     escaped(to, R"(\&|)"));
}

std::vector<std::string> pack(const Split& what, const std::string& rename = "") {
  std::vector<std::string> out = {"tar", "-cf", "-", "-C", what.folder};
  if (!rename.empty()) out.push_back(rename);
  out.push_back("./" + what.name);
  return out;
}

std::vector<std::string> unpack(const std::string& folder) {
  return {"tar", "-xmf", "-", "-C", folder};
}

// On this machine. Whoever sends the archive is not trusted: nothing but what was asked for is
// taken out of it, and nothing becomes root's or anybody's but the user's own.
std::vector<std::string> unpack_here(const Split& here, const std::string& name) {
  std::vector<std::string> out = unpack(here.folder);
  out.insert(out.end(), {"--no-same-owner", "--no-same-permissions", "--no-wildcards"});
  if (const std::string rename = renaming(name, here.name); !rename.empty()) out.push_back(rename);
  out.push_back("./" + name);
  return out;
}

// A program of this machine with one of its streams replaced.
Result<pid_t> start_here(const std::vector<std::string>& command, int fd, int as) {
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, fd, as);
  pid_t pid = 0;
  const int problem = ::posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (problem != 0) return fail(Code::kNotFound, "the program tar is needed on this machine");
  return pid;
}

Result<void> finish(pid_t pid, const Result<int>& there) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!there) return std::unexpected(there.error());
  if (*there != 0) {
    return fail(Code::kInternal, fmt::format("tar in the pod ended with code {}{}", *there,
                                             *there == 127 ? ": the container has no tar" : ""));
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return fail(Code::kInternal, "tar on this machine did not end well");
  }
  return {};
}

Talk talk(const Place& place, const CopyOptions& options, std::vector<std::string> command) {
  return {.ns = place.ns,
          .pod = place.pod,
          .container = options.container,
          .command = std::move(command),
          .out_fd = -1};
}

Result<void> copy_in(Connection& server, const std::string& from, Place to,
                     const CopyOptions& options) {
  std::error_code error;
  if (!fs::exists(from, error)) return fail(Code::kNotFound, fmt::format("there is no {}", from));
  SKIFF_ASSIGN(const Split here, split_path(fs::absolute(from).lexically_normal().string()));
  // Into a folder that is there already, as cp does.
  SKIFF_ASSIGN(const int is_folder,
               talk_to_program(server, talk(to, options, {"test", "-d", to.path})));
  if (is_folder == 0) to.path = (to.path.ends_with('/') ? to.path : to.path + "/") + here.name;
  SKIFF_ASSIGN(const Split there, split_path(to.path));
  SKIFF_ASSIGN(Pipe pipe, make_pipe());
  SKIFF_ASSIGN(const pid_t tar, start_here(pack(here, renaming(here.name, there.name)),
                                           pipe.write.get(), STDOUT_FILENO));
  pipe.write.reset();
  Talk extract = talk(to, options, unpack(there.folder));
  extract.in_fd = pipe.read.get();
  const auto done = talk_to_program(server, extract);
  pipe.read.reset();
  return finish(tar, done);
}

Result<void> copy_out(Connection& server, const Place& from, std::string to,
                      const CopyOptions& options) {
  SKIFF_ASSIGN(const Split there, split_path(from.path));
  std::error_code error;
  if (fs::is_directory(to, error)) to = (fs::path(to) / there.name).string();
  SKIFF_ASSIGN(const Split here, split_path(fs::absolute(to).lexically_normal().string()));
  fs::create_directories(here.folder, error);
  if (error) {
    return fail(Code::kForbidden,
                fmt::format("cannot make the folder {}: {}", here.folder, error.message()));
  }
  SKIFF_ASSIGN(Pipe pipe, make_pipe());
  SKIFF_ASSIGN(const pid_t tar,
               start_here(unpack_here(here, there.name), pipe.read.get(), STDIN_FILENO));
  pipe.read.reset();
  Talk send = talk(from, options, pack(there));
  send.out_fd = pipe.write.get();
  const auto done = talk_to_program(server, send);
  pipe.write.reset();
  return finish(tar, done);
}

Result<void> run_copy(Context& context, const CopyOptions& options) {
  SKIFF_ASSIGN(Connection * server, context.connect());
  const Place from = read_place(options.from, context.ns());
  const Place to = read_place(options.to, context.ns());
  if (from.pod.empty() == to.pod.empty()) {
    return fail(Code::kBadRequest, "one of the two must be POD:PATH, and the other a path here");
  }
  if (from.pod.empty()) return copy_in(*server, from.path, to, options);
  return copy_out(*server, from, to.path, options);
}

}  // namespace

void add_cp(CLI::App& app, Context& context, int& exit_code) {
  auto options = std::make_shared<CopyOptions>();
  CLI::App* verb = app.add_subcommand("cp", "Copy files and folders into a pod or out of it");
  verb->add_option("from", options->from, "PATH or [NAMESPACE/]POD:PATH")->required();
  verb->add_option("to", options->to, "[NAMESPACE/]POD:PATH or PATH")->required();
  verb->add_option("-c,--container", options->container, "Container (the pod's only one)");
  verb->footer(R"help(
Examples:
  skiff cp data.csv trainer-0:/tmp/
  skiff cp trainer-0:/tmp/model ./model
Both sides need the program tar.
)help");
  verb->callback([options, &context, &exit_code] {
    if (auto done = run_copy(context, *options); !done) exit_code = report(done.error());
  });
}

}  // namespace skiff::cli
