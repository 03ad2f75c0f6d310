// cli::Connection over client/remote.
#include <fmt/format.h>

#include <mutex>

#include "api/meta.h"
#include "cli/context.h"
#include "client/remote/remote_client.h"
#include "client/remote/status.h"

namespace skiff::cli {
namespace {

class RemoteConnection : public Connection {
 public:
  explicit RemoteConnection(client::Access access)
      : ns_(access.ns), client_(std::move(access), {}, {.user_agent = "skiff-cli"}) {}

  client::Client& client() override { return client_; }

  Result<http::Response> send(const http::Request& request) override {
    SKIFF_ASSIGN(http::Response answer, client_.raw(request));
    if (answer.status >= 400) return std::unexpected(client::error_of(answer));
    return answer;
  }

  Result<void> lines(const http::Request& request,
                     const std::function<bool(std::string_view)>& line) override {
    SKIFF_ASSIGN(const auto stream, client_.raw_stream(request));
    std::string rest;
    for (;;) {
      SKIFF_ASSIGN(const std::optional<std::string> piece, stream->read());
      if (!piece) break;
      rest += *piece;
      if (stream->status() >= 400) continue;
      std::size_t begin = 0;
      for (std::size_t end = rest.find('\n'); end != std::string::npos;
           end = rest.find('\n', begin)) {
        if (!line(std::string_view(rest).substr(begin, end - begin))) return {};
        begin = end + 1;
      }
      rest.erase(0, begin);
    }
    if (stream->status() >= 400)
      return std::unexpected(client::error_of({.status = stream->status(), .body = rest}));
    if (!rest.empty()) line(rest);
    return {};
  }

  Result<std::vector<api::Kind>> kinds() override {
    const std::lock_guard lock(kinds_lock_);
    if (kinds_.empty()) {
      SKIFF_ASSIGN(kinds_, client_.discover());
    }
    return kinds_;
  }

  Result<api::Kind> kind(std::string_view word) override {
    SKIFF_ASSIGN(const std::vector<api::Kind> all, kinds());
    return find_kind(all, word);
  }

  Result<api::Kind> kind_of(const json::value& object) override {
    SKIFF_ASSIGN(const std::vector<api::Kind> all, kinds());
    for (const api::Kind& kind : all) {
      if (kind.resource.kind == api::kind(object) &&
          kind.resource.api_version() == api::api_version(object)) {
        return kind;
      }
    }
    return fail(
        Code::kNotFound,
        fmt::format("the server has no kind \"{}\" in version \"{}\" (all: skiff get --kinds)",
                    api::kind(object), api::api_version(object)));
  }

  std::string default_namespace() const override { return ns_; }

 private:
  const std::string ns_;
  client::RemoteClient client_;
  std::mutex kinds_lock_;
  std::vector<api::Kind> kinds_;
};

}  // namespace

Result<std::unique_ptr<Connection>> open_connection(const std::string& kubeconfig_path) {
  SKIFF_ASSIGN(client::Access access, client::load_kubeconfig(kubeconfig_path));
  return std::make_unique<RemoteConnection>(std::move(access));
}

}  // namespace skiff::cli
