#include "assembly/rootless.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string_view>
#include <vector>

#include "assembly/address.h"
#include "assembly/log.h"
#include "assembly/platform.h"
#include "net/server.h"
#include "node/process/untrusted.h"
#include "node/rootless/rootless.h"
#include "node/shim/files.h"
#include "node/shim/user.h"

extern char** environ;

namespace skiff::assembly {
namespace {

std::string own_binary() { return std::filesystem::canonical("/proc/self/exe"); }

bool run_self(std::vector<std::string> words) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t pid = 0;
  int status = 0;
  if (::posix_spawn(&pid, argv[0], nullptr, nullptr, argv.data(), environ) != 0) return false;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status == 0;
}

Result<void> open_doors(const cli::UpOptions& options, Outside& outside) {
  SKIFF_ASSIGN(const Address https, parse_address("--https", options.https));
  SKIFF_ASSIGN(const Address http, parse_address("--http", options.http));
  SKIFF_ASSIGN(outside.https,
               net::open_listener({.address = https.host, .port = https.port, .tls = true}));
  SKIFF_ASSIGN(outside.http, net::open_listener({.address = http.host, .port = http.port}));
  outside.owners = std::make_shared<net::SocketOwners>(node::is_untrusted);
  return {};
}

}  // namespace

Result<void> move_inside(const DataFolder& folder, const cli::UpOptions& options,
                         Outside& outside) {
  if (::geteuid() == 0 || options.api_only || outside.entered) return {};
  if (outside.https < 0) SKIFF_TRY(open_doors(options, outside));
  const auto story = node::enter_rootless({.folder = folder.path(), .skiff_binary = own_binary()});
  if (!story) {
    // Half the way in, we would be root of nothing.
    if (!node::own_user_map().whole) return std::unexpected(story.error());
    log_line(fmt::format("pods have loopback addresses, no network of their own: {}",
                         story.error().message));
    return {};
  }
  outside.entered = true;
  log_line(
      fmt::format("not root: pods have a network of their own in a user namespace, {}{}",
                  story->problem.empty() ? "the outside by " + story->program
                                         : "but do not reach the outside: " + story->problem,
                  story->many_users
                      ? ""
                      : "; all users in pods are you (/etc/subuid and newuidmap give no others)"));
  return {};
}

bool needs_sweep(const std::string& data) {
  std::error_code error;
  const std::string full = std::filesystem::canonical(data, error);
  return ::geteuid() != 0 && !error && node::rootless_lives(full);
}

Result<void> sweep(const std::string& data) {
  if (run_self({own_binary(), "sweep", data})) return {};
  return fail(Code::kInternal, "pods may be left in the user namespace of " + data);
}

Result<void> purge(const std::string& data) {
  if (::geteuid() != 0 && run_self({own_binary(), "sweep", data, "purge"})) return {};
  return fail(Code::kInternal, fmt::format("cannot remove all of {}", data));
}

int sweep_main(int argc, char** argv) {
  const auto done = [&]() -> Result<void> {
    if (argc == 4 && std::string_view(argv[3]) == "purge") {
      SKIFF_TRY(node::enter_for_files(argv[2]));
      node::remove_tree(argv[2]);
      if (::access(argv[2], F_OK) != 0) return {};
      return fail(Code::kInternal, fmt::format("{} is still there", argv[2]));
    }
    if (argc != 3) return fail(Code::kBadRequest, "usage: skiff sweep DATA");
    SKIFF_ASSIGN(const DataFolder folder, DataFolder::open(argv[2]));
    SKIFF_TRY(node::enter_held(folder.path()));
    SKIFF_TRY(clean_up_in(folder));
    node::end_rootless(folder.path());
    return {};
  }();
  if (done) return 0;
  fmt::print(stderr, "error: {}\n", done.error().message);
  return 1;
}

}  // namespace skiff::assembly
