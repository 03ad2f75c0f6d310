// The API server of this process as a client::Client: no sockets, no copies on reads, and a
// controller's plan as one store transaction.
#pragma once

#include <functional>
#include <memory>

#include "apiserver/server.h"
#include "client/client.h"

namespace skiff::client {

// Runs a function on the loop thread, later. In the simulator: puts it on the queue of the world.
using Post = std::function<void(std::function<void()>)>;

class LocalClient final : public Client {
 public:
  LocalClient(apiserver::Server& server, Post post);

  Result<json::value> get(const api::Resource& resource, std::string_view ns,
                          std::string_view name) override;
  Result<List> list(const api::Resource& resource, std::string_view ns,
                    const ListOptions& options) override;
  Result<json::value> write(const Write& write) override;
  // Writes at once and calls `done` before it returns, in the caller's thread, which must be the
  // loop's.
  void submit(std::vector<Write> writes, Done done) override;
  Result<std::unique_ptr<Watch>> watch(const api::Resource& resource, std::uint64_t after_revision,
                                       std::function<void()> ready) override;
  void when_safe(std::function<void()> fn) override;

 private:
  apiserver::Server& server_;
  store::Store& store_;
  Post post_;
};

}  // namespace skiff::client
