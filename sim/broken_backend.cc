#include "sim/broken_backend.h"

#include <algorithm>
#include <utility>

namespace skiff::sim {
namespace {

// How often a flaw that shows only now and then does so.
constexpr std::uint64_t kNowAndThen = 50;

bool binds(const client::Write& write) { return write.subresource == "binding"; }

class LossyWatch final : public client::Watch {
 public:
  LossyWatch(std::unique_ptr<client::Watch> inner, std::uint64_t& events)
      : inner_(std::move(inner)), events_(events) {}

  Result<std::vector<client::Event>> poll() override {
    SKIFF_ASSIGN(auto events, inner_->poll());
    std::erase_if(events, [this](const auto&) { return ++events_ % kNowAndThen == 0; });
    return events;
  }

 private:
  const std::unique_ptr<client::Watch> inner_;
  std::uint64_t& events_;
};

class BrokenClient final : public client::Client {
 public:
  BrokenClient(Flaw flaw, Backend& backend) : flaw_(flaw), backend_(backend) {}

  Result<json::value> get(const api::Resource& resource, std::string_view ns,
                          std::string_view name) override {
    return server().get(resource, ns, name);
  }
  Result<client::List> list(const api::Resource& resource, std::string_view ns,
                            const client::ListOptions& options) override {
    SKIFF_ASSIGN(auto listed, server().list(resource, ns, options));
    // Several lists in a row: one alone is outvoted by those of other resources.
    if (flaw_ == Flaw::kRevisionsGoBack && ++lists_ / kNowAndThen % 2 == 1) listed.revision /= 2;
    return listed;
  }
  Result<json::value> write(const client::Write& write) override {
    client::Write sent = write;
    if (flaw_ == Flaw::kLazySync) sent.synced = false;
    return server().write(sent);
  }
  void submit(std::vector<client::Write> writes, Done done) override {
    for (client::Write& write : writes) {
      if (flaw_ == Flaw::kLazySync) write.synced = false;
      if (flaw_ == Flaw::kCrowdedNode && binds(write)) {
        json::set(write.body, {"target", "name"}, "n0");
      }
    }
    if (flaw_ != Flaw::kHalfTransactions || writes.size() < 2 ||
        !std::ranges::all_of(writes, binds)) {
      return server().submit(std::move(writes), std::move(done));
    }
    const std::size_t all = writes.size();
    writes.resize(1);
    server().submit(std::move(writes), [&](std::vector<Result<json::value>> answers) {
      if (answers.back()) answers.resize(all, json::value(json::object{}));
      done(std::move(answers));
    });
  }
  Result<std::unique_ptr<client::Watch>> watch(const api::Resource& resource,
                                               std::uint64_t after_revision,
                                               std::function<void()> ready) override {
    SKIFF_ASSIGN(auto inner, server().watch(resource, after_revision, std::move(ready)));
    if (flaw_ != Flaw::kLostEvents) return inner;
    return std::make_unique<LossyWatch>(std::move(inner), events_);
  }
  void when_safe(std::function<void()> fn) override { server().when_safe(std::move(fn)); }

 private:
  client::Client& server() { return backend_.client(); }

  const Flaw flaw_;
  Backend& backend_;
  std::uint64_t lists_ = 0;
  std::uint64_t events_ = 0;
};

class BrokenBackend final : public Backend {
 public:
  BrokenBackend(Flaw flaw, std::unique_ptr<Backend> inner)
      : flaw_(flaw), inner_(std::move(inner)), client_(flaw, *inner_) {}

  client::Client& client() override { return client_; }
  void work() override {
    if (flaw_ != Flaw::kNoGarbageCollection) inner_->work();
  }
  void flush() override {
    if (flaw_ != Flaw::kNeverWrites) inner_->flush();
  }
  bool safe() override { return flaw_ == Flaw::kNeverWrites || inner_->safe(); }
  std::uint64_t promised() override {
    // Whoever wrote was promised as much as by a sound server.
    return flaw_ == Flaw::kLazySync ? UINT64_MAX : inner_->promised();
  }
  void restart(bool power_cut) override { inner_->restart(power_cut); }

 private:
  const Flaw flaw_;
  const std::unique_ptr<Backend> inner_;
  BrokenClient client_;
};

}  // namespace

std::unique_ptr<Backend> make_broken_backend(Flaw flaw, const Workload& workload,
                                             const env::Clock& clock, std::uint64_t seed) {
  return std::make_unique<BrokenBackend>(flaw, make_backend(workload, clock, seed));
}

}  // namespace skiff::sim
