// The API server of this process as a client::Client: no sockets, no copies on reads, and a
// controller's plan as one store transaction.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "apiserver/server.h"
#include "client/client.h"

namespace skiff::client {

// Runs a function on the loop thread, later. In the simulator: puts it on the queue of the world.
using Post = std::function<void(std::function<void()>)>;

// About ten milliseconds of work. A job of ten thousand pods is seconds of it.
inline constexpr std::size_t kLongSubmit = 50;

class LocalClient final : public Client {
 public:
  // `elsewhere`, where given: another thread, for submits that would hold up the loop.
  LocalClient(apiserver::Server& server, Post post, Post elsewhere = {});

  Result<json::value> get(const api::Resource& resource, std::string_view ns,
                          std::string_view name) override;
  Result<List> list(const api::Resource& resource, std::string_view ns,
                    const ListOptions& options) override;
  Result<json::value> write(const Write& write) override;
  // Writes at once and calls `done` before it returns, in the caller's thread, which must be the
  // loop's. One of more than kLongSubmit writes is written elsewhere, and `done` is posted; its
  // answers tell name, namespace, uid and revision only.
  // Where it is answered kConflict, because others in its namespace wrote in between each time, the
  // next long one of that namespace is written here: then the loop's own writes cannot.
  void submit(std::vector<Write> writes, Done done) override;
  Result<std::unique_ptr<Watch>> watch(const api::Resource& resource, std::uint64_t after_revision,
                                       std::function<void()> ready) override;
  void when_safe(std::function<void()> fn) override;

 private:
  apiserver::Server& server_;
  store::Store& store_;
  Post post_;
  Post elsewhere_;
  // Namespaces whose last long submit was overtaken. Of the loop's thread; shared with answers that
  // are under way.
  std::shared_ptr<std::set<std::string>> crowded_ = std::make_shared<std::set<std::string>>();
};

}  // namespace skiff::client
