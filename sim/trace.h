// Tells what is written through a client, line by line; for --verbose.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "client/client.h"

namespace skiff::sim {

class Trace final : public client::Client {
 public:
  using Log = std::function<void(std::string_view line)>;
  // `server` is asked anew for each call, because a restart replaces it.
  Trace(std::string who, std::function<client::Client&()> server, Log log)
      : who_(std::move(who)), server_(std::move(server)), log_(std::move(log)) {}

  Result<json::value> get(const api::Resource& resource, std::string_view ns,
                          std::string_view name) override {
    return server_().get(resource, ns, name);
  }
  Result<client::List> list(const api::Resource& resource, std::string_view ns,
                            const client::ListOptions& options) override {
    return server_().list(resource, ns, options);
  }
  Result<json::value> write(const client::Write& write) override;
  void submit(std::vector<client::Write> writes, Done done) override;
  Result<std::unique_ptr<client::Watch>> watch(const api::Resource& resource,
                                               std::uint64_t after_revision,
                                               std::function<void()> ready) override {
    return server_().watch(resource, after_revision, std::move(ready));
  }
  void when_safe(std::function<void()> fn) override { server_().when_safe(std::move(fn)); }

 private:
  void tell(const client::Write& write, const Result<json::value>* answer) const;

  const std::string who_;
  const std::function<client::Client&()> server_;
  const Log log_;
};

// One line about an object: what it is, where it runs, how it is.
std::string in_short(const std::string& resource, const json::value& object);

}  // namespace skiff::sim
