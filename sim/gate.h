// The controllers' way to the API server, with faults on it.
//
// It outlives the server behind it: when the process dies, the gate is dead until it is attached to
// the next one, and whoever waits for an answer never gets it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "client/client.h"
#include "env/env.h"

namespace skiff::sim {

class Gate : public client::Client {
 public:
  Gate(const env::Clock& clock, Random& random) : clock_(clock), random_(random) {}

  void attach(client::Client* server) {
    server_ = server;
    dead_ = false;
    made_.clear();
  }
  bool dead() const { return dead_; }

  // Faults, each off at its default.
  Duration watch_delay = {};         // events arrive this late
  unsigned conflict_percent = 0;     // submits answered 409 although nothing changed
  unsigned lost_answer_percent = 0;  // submits that take effect but answer "timeout"
  unsigned duplicate_percent = 0;    // polls that repeat an event
  // The process dies at the n-th submit from now: before it takes effect, or after.
  std::optional<std::uint64_t> die_at = {};
  bool die_after_effect = false;
  bool die_by_power_cut = false;
  void break_watches() { ++breaks_; }
  void expire_watches() { ++expiries_; }
  void calm();

  // A child that a controller made, was told so, and made again in the same life of the process: it
  // planned before it had seen its own write. Names keep the world from harm, but a controller that
  // does not wait for its cache plans everything twice.
  const std::optional<std::string>& forgotten_write() const { return forgotten_write_; }

  // When the next delayed event arrives, if any is on its way.
  std::optional<Duration> next_arrival() const;

  Result<json::value> get(const api::Resource& resource, std::string_view ns,
                          std::string_view name) override;
  Result<client::List> list(const api::Resource& resource, std::string_view ns,
                            const client::ListOptions& options) override;
  Result<json::value> write(const client::Write& write) override;
  void submit(std::vector<client::Write> writes, Done done) override;
  Result<std::unique_ptr<client::Watch>> watch(const api::Resource& resource,
                                               std::uint64_t after_revision,
                                               std::function<void()> ready) override;
  void when_safe(std::function<void()> fn) override { server_->when_safe(std::move(fn)); }

 private:
  friend class GateWatch;

  void remember(const std::vector<client::Write>& writes,
                const std::vector<Result<json::value>>& answers);

  const env::Clock& clock_;
  Random& random_;
  client::Client* server_ = nullptr;
  bool dead_ = true;
  std::uint64_t breaks_ = 0;
  std::uint64_t expiries_ = 0;
  std::vector<const class GateWatch*> watches_ = {};
  std::map<std::string, std::string> made_ = {};  // path to the uid of the owner it was made for
  std::optional<std::string> forgotten_write_ = {};
};

}  // namespace skiff::sim
