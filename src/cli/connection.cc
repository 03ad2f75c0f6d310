// cli::Connection over client/remote.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <random>

#include "api/meta.h"
#include "base/websocket.h"
#include "cli/context.h"
#include "client/remote/lines.h"
#include "client/remote/remote_client.h"
#include "client/remote/status.h"

namespace skiff::cli {
namespace {

using namespace std::chrono_literals;

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
                     const std::function<bool(std::string_view)>& line,
                     std::optional<std::chrono::milliseconds> time) override {
    SKIFF_ASSIGN(const auto stream, client_.raw_stream(request));
    if (stream->status() >= 400) return refused(*stream);
    const auto end = std::chrono::steady_clock::now() + time.value_or(0ms);
    client::LineBuffer text;
    while (true) {
      auto left = time;
      if (left)
        left = std::max(1ms, std::chrono::ceil<std::chrono::milliseconds>(
                                 end - std::chrono::steady_clock::now()));
      const auto piece = stream->read(left);
      if (!piece && time && piece.error().code == Code::kTimeout) return {};
      if (!piece) return std::unexpected(piece.error());
      if (!*piece) break;
      text.add(**piece);
      while (const auto next = text.next()) {
        if (!line(*next)) return {};
      }
    }
    if (!text.rest().empty()) line(text.rest());
    return {};
  }

  Result<void> download(const http::Request& request,
                        const std::function<Result<void>(std::string_view)>& piece,
                        std::optional<std::chrono::milliseconds> silence) override {
    SKIFF_ASSIGN(const auto stream, client_.raw_stream(request));
    if (stream->status() >= 400) return refused(*stream);
    while (true) {
      SKIFF_ASSIGN(const auto next, stream->read(silence));
      if (!next) return {};
      SKIFF_TRY(piece(*next));
    }
  }

  Result<std::unique_ptr<net::StreamingResponse>> websocket(const std::string& target,
                                                            std::string_view protocols) override {
    std::string nonce(16, '\0');
    std::random_device random;
    for (char& byte : nonce) byte = static_cast<char>(random());
    SKIFF_ASSIGN(
        auto stream,
        client_.raw_stream(
            {.method = "GET", .target = target, .headers = ws::client_headers(nonce, protocols)}));
    if (stream->status() == 101) return stream;
    SKIFF_TRY(refused(*stream));
    return fail(Code::kInternal, "the server does not speak WebSocket here");
  }

  Result<std::vector<client::Discovered>> resources() override {
    const std::lock_guard lock(kinds_lock_);
    if (resources_.empty()) {
      SKIFF_ASSIGN(resources_, client_.discover_all());
    }
    return resources_;
  }

  Result<std::vector<api::Kind>> kinds() override {
    SKIFF_ASSIGN(std::vector<client::Discovered> all, resources());
    std::vector<api::Kind> out;
    for (client::Discovered& one : all) out.push_back(std::move(one.kind));
    return out;
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
        fmt::format("the server has no kind \"{}\" in version \"{}\" (all: skiff api-resources)",
                    api::kind(object), api::api_version(object)));
  }

  std::string default_namespace() const override { return ns_; }

 private:
  static Result<void> refused(net::StreamingResponse& stream) {
    http::Response answer{.status = stream.status(), .headers = stream.headers()};
    while (true) {
      SKIFF_ASSIGN(const auto piece, stream.read(10s));
      if (!piece) return std::unexpected(client::error_of(answer));
      answer.body += *piece;
    }
  }

  const std::string ns_;
  client::RemoteClient client_;
  std::mutex kinds_lock_;
  std::vector<client::Discovered> resources_;
};

}  // namespace

std::unique_ptr<Connection> open_connection(client::Access access) {
  return std::make_unique<RemoteConnection>(std::move(access));
}

}  // namespace skiff::cli
