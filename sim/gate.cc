#include "sim/gate.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "api/meta.h"

namespace skiff::sim {
namespace {

std::unexpected<Error> gone() { return fail(Code::kServiceUnavailable, "the server is gone"); }

}  // namespace

class GateWatch : public client::Watch {
 public:
  GateWatch(Gate& gate, std::unique_ptr<client::Watch> inner)
      : gate_(gate), inner_(std::move(inner)), breaks_(gate.breaks_), expiries_(gate.expiries_) {
    gate_.watches_.push_back(this);
  }
  ~GateWatch() override { std::erase(gate_.watches_, this); }

  Result<std::vector<client::Event>> poll() override {
    if (gate_.dead_) return gone();
    if (expiries_ != gate_.expiries_) return fail(Code::kExpired, "history is gone");
    if (breaks_ != gate_.breaks_) return fail(Code::kServiceUnavailable, "the stream broke");
    SKIFF_ASSIGN(auto events, inner_->poll());
    const Duration now = gate_.clock_.elapsed();
    for (client::Event& event : events) {
      // A stream keeps its order: nothing arrives before what was sent earlier.
      const Duration earliest = waiting_.empty() ? now : waiting_.back().first;
      waiting_.emplace_back(std::max(earliest, now + gate_.watch_delay), std::move(event));
    }
    std::vector<client::Event> out;
    while (!waiting_.empty() && waiting_.front().first <= now) {
      out.push_back(std::move(waiting_.front().second));
      waiting_.pop_front();
    }
    if (!out.empty() && gate_.random_.chance(gate_.duplicate_percent)) {
      out.push_back(out[gate_.random_.below(out.size())]);
    }
    return out;
  }

  std::optional<Duration> next_arrival() const {
    if (waiting_.empty()) return std::nullopt;
    return waiting_.front().first;
  }

 private:
  Gate& gate_;
  const std::unique_ptr<client::Watch> inner_;
  const std::uint64_t breaks_;
  const std::uint64_t expiries_;
  std::deque<std::pair<Duration, client::Event>> waiting_ = {};
};

void Gate::calm() {
  watch_delay = {};
  conflict_percent = 0;
  lost_answer_percent = 0;
  duplicate_percent = 0;
  die_at.reset();
}

std::optional<Duration> Gate::next_arrival() const {
  std::optional<Duration> out;
  for (const GateWatch* watch : watches_) {
    const auto at = watch->next_arrival();
    if (at && (!out || *at < *out)) out = at;
  }
  return out;
}

Result<json::value> Gate::get(const api::Resource& resource, std::string_view ns,
                              std::string_view name) {
  if (dead_) return gone();
  return server_->get(resource, ns, name);
}

Result<client::List> Gate::list(const api::Resource& resource, std::string_view ns,
                                const client::ListOptions& options) {
  if (dead_) return gone();
  return server_->list(resource, ns, options);
}

Result<json::value> Gate::write(const client::Write& write) {
  if (dead_) return gone();
  return server_->write(write);
}

void Gate::submit(std::vector<client::Write> writes, Done done) {
  if (dead_) return;  // as with the whole process: nobody is left to answer
  if (die_at && (*die_at)-- == 0) {
    die_at.reset();
    dead_ = true;
    if (die_after_effect) server_->submit(std::move(writes), [](auto) {});
    return;
  }
  if (random_.chance(conflict_percent)) {
    return done({fail(Code::kConflict, "the object has been modified")});
  }
  if (random_.chance(lost_answer_percent)) {
    // Whoever makes it once more has not been told that it is there.
    for (const client::Write& write : writes) {
      if (write.verb == client::Verb::kCreate) {
        made_.erase(write.resource.path(write.ns, api::name(write.body)));
      }
    }
    server_->submit(std::move(writes), [](auto) {});
    return done({fail(Code::kTimeout, "no answer in time")});
  }
  std::vector<client::Write> told = writes;
  server_->submit(std::move(writes),
                  [this, told = std::move(told), done = std::move(done)](auto answers) {
                    remember(told, answers);
                    done(std::move(answers));
                  });
}

void Gate::remember(const std::vector<client::Write>& writes,
                    const std::vector<Result<json::value>>& answers) {
  for (std::size_t i = 0; i < answers.size() && i < writes.size(); ++i) {
    if (writes[i].verb != client::Verb::kCreate || !writes[i].subresource.empty()) continue;
    const json::object* owner = api::controller_of(writes[i].body);
    const json::value* uid = owner == nullptr ? nullptr : owner->if_contains("uid");
    if (uid == nullptr || !uid->is_string()) continue;
    const std::string path = writes[i].resource.path(writes[i].ns, api::name(writes[i].body));
    if (answers[i]) {
      made_[path] = std::string(json::view(uid->get_string()));
    } else if (answers[i].error().code == Code::kAlreadyExists &&
               made_[path] == json::view(uid->get_string())) {
      forgotten_write_ = path;
    }
  }
}

Result<std::unique_ptr<client::Watch>> Gate::watch(const api::Resource& resource,
                                                   std::uint64_t after_revision,
                                                   std::function<void()> ready) {
  if (dead_) return gone();
  SKIFF_ASSIGN(auto inner, server_->watch(resource, after_revision, std::move(ready)));
  return std::make_unique<GateWatch>(*this, std::move(inner));
}

}  // namespace skiff::sim
