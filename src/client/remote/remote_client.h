// The client over HTTPS, to any Kubernetes API server. What controllers see is client.h; the CLI
// also asks for kinds and for raw answers.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/http.h"
#include "client/client.h"
#include "client/remote/discovery.h"
#include "client/remote/session.h"
#include "client/remote/workers.h"

namespace skiff::client {

struct RemoteOptions {
  WorkersOptions workers = {};  // of submit(); what they cannot take is kTooManyRequests
  std::size_t page_items = 500;
  std::size_t watch_events = 1'000;  // held for a slow poll(); past it the server has to wait
  std::chrono::milliseconds watch_patience = std::chrono::seconds(30);  // WatchOptions::patience
  std::chrono::milliseconds timeout = std::chrono::seconds(30);
  std::string user_agent = "skiff";
  PaceOptions pace = {};
};

// Any thread may call it. Destroying it ends whatever waits, watches too, and drops submits that
// have not begun.
class RemoteClient : public Client {
 public:
  // Runs a function on the loop's thread. Empty: completions run on the worker's own thread.
  using Post = std::function<void(std::function<void()>)>;

  RemoteClient(Access access, Post post, RemoteOptions options = {});
  ~RemoteClient() override;

  Result<json::value> get(const api::Resource& resource, std::string_view ns,
                          std::string_view name) override;
  // Reads all pages.
  Result<List> list(const api::Resource& resource, std::string_view ns,
                    const ListOptions& options) override;
  Result<json::value> write(const Write& write) override;
  // Answers have metadata only. What need not be synced (events) gives way to the rest.
  void submit(std::vector<Write> writes, Done done) override;
  Result<std::unique_ptr<Watch>> watch(const api::Resource& resource, std::uint64_t after_revision,
                                       std::function<void()> ready) override;
  void when_safe(std::function<void()> fn) override;

  // Every kind the server has, in its order: the first of several versions is the preferred one.
  Result<std::vector<api::Kind>> discover();
  // The same with what can be done to them.
  Result<std::vector<Discovered>> discover_all();
  // Our credentials are added. The answer is given whatever its status.
  Result<http::Response> raw(http::Request request);
  Result<std::unique_ptr<net::StreamingResponse>> raw_stream(http::Request request);

  const Access& access() const { return session_->access(); }

 private:
  Result<json::value> call(http::Request request);
  Result<json::value> read_page(const api::Resource& resource, std::string_view ns,
                                const ListOptions& options, std::string_view limit,
                                std::string_view next);
  Result<List> list_pages(const api::Resource& resource, std::string_view ns,
                          const ListOptions& options, std::string_view limit);
  Result<json::value> write_briefly(const Write& write);
  bool failed_precondition(const Write& write, const Result<json::value>& result);

  const Post post_;
  const RemoteOptions options_;
  const std::shared_ptr<Session> session_;  // watches that outlive us hold it, too
  std::unique_ptr<Workers> workers_;
};

}  // namespace skiff::client
