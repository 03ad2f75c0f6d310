#include "sim/backend.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "api/builtin.h"
#include "api/kinds.h"
#include "api/meta.h"
#include "apiserver/server.h"
#include "base/check.h"
#include "client/local/local_client.h"
#include "schema/registry.h"
#include "store/memory_journal.h"

namespace skiff::sim {
namespace {

constexpr unsigned kGarbagePasses = 1000;

std::vector<api::Kind> kinds_of(const Workload& workload) {
  std::vector<api::Kind> out = api::builtin_kinds();
  std::ranges::move(workload.kinds(), std::back_inserter(out));
  return out;
}

// One for all worlds of the program: reading the built-in definitions takes longer than a whole
// run. Schemas are facts, so sharing them carries nothing from one run to the next.
const schema::Registry& registry_for(const Workload& workload) {
  static schema::Registry registry(api::builtin_definitions());
  for (auto& [name, schema] : workload.schemas()) {
    if (registry.find(name) == nullptr) registry.add(name, std::move(schema));
  }
  return registry;
}

// Passes everything on, and notes after each write which revision a power cut must leave.
class Noting final : public client::Client {
 public:
  Noting(client::Client& inner, store::Store& store, const std::vector<api::Kind>& kinds)
      : inner_(inner), store_(store) {
    for (const api::Kind& kind : kinds) {
      if (kind.lazy) lazy_.push_back(kind.resource.key());
    }
  }

  store::Revision promised() const { return promised_; }

  Result<json::value> get(const api::Resource& resource, std::string_view ns,
                          std::string_view name) override {
    return inner_.get(resource, ns, name);
  }
  Result<client::List> list(const api::Resource& resource, std::string_view ns,
                            const client::ListOptions& options) override {
    return inner_.list(resource, ns, options);
  }
  Result<json::value> write(const client::Write& write) override {
    const store::Revision before = store_.revision();
    auto answer = inner_.write(write);
    if (answer) note(write, before, *answer);
    return answer;
  }
  void submit(std::vector<client::Write> writes, Done done) override {
    const std::vector<client::Write> sent = writes;
    const store::Revision before = store_.revision();
    inner_.submit(std::move(writes), [&](std::vector<Result<json::value>> answers) {
      for (std::size_t i = 0; i < answers.size(); ++i) {
        if (answers[i]) note(sent[i], before, *answers[i]);
      }
      done(std::move(answers));
    });
  }
  Result<std::unique_ptr<client::Watch>> watch(const api::Resource& resource,
                                               std::uint64_t after_revision,
                                               std::function<void()> ready) override {
    return inner_.watch(resource, after_revision, std::move(ready));
  }
  void when_safe(std::function<void()> fn) override { inner_.when_safe(std::move(fn)); }

 private:
  void note(const client::Write& write, store::Revision before, const json::value& answer) {
    const bool lazy = std::ranges::find(lazy_, write.resource.key()) != lazy_.end();
    if (!write.synced || lazy) return;
    // One thread: nobody else has committed since. A write that changed nothing promises no more
    // than the object that it answers with.
    const store::Revision now = store_.revision();
    promised_ = std::max(promised_, now > before ? now : api::revision(answer));
  }

  client::Client& inner_;
  store::Store& store_;
  std::vector<std::string> lazy_ = {};
  store::Revision promised_ = 0;
};

// What dies with the process.
struct Process {
  Process(std::shared_ptr<store::MemoryDisk> disk, const std::vector<api::Kind>& kinds,
          const schema::Registry& registry, const env::Clock& clock, std::uint64_t seed)
      : store(open(std::move(disk))),
        server(*store, kinds, registry, clock, seed, {}),
        local(server, [this](std::function<void()> fn) { posted.push_back(std::move(fn)); }),
        client(local, *store, kinds) {
    const auto ready = server.bootstrap();
    SKIFF_CHECK(ready.has_value(), "a server on a healthy disk can start");
  }

  static std::unique_ptr<store::Store> open(std::shared_ptr<store::MemoryDisk> disk) {
    auto opened = store::Store::open(store::open_memory_journal(std::move(disk)),
                                     store::Store::Writer::kManual);
    SKIFF_CHECK(opened.has_value(), "a healthy disk can be opened");
    return std::move(*opened);
  }

  std::deque<std::function<void()>> posted = {};
  std::unique_ptr<store::Store> store;
  apiserver::Server server;
  client::LocalClient local;
  Noting client;
};

class StoreBackend final : public Backend {
 public:
  StoreBackend(const Workload& workload, const env::Clock& clock, std::uint64_t seed)
      : clock_(clock), seed_(seed), kinds_(kinds_of(workload)), registry_(registry_for(workload)) {
    start();
  }

  client::Client& client() override { return process_->client; }

  void work() override {
    unsigned passes = 0;
    while (process_->server.collect_garbage()) {
      SKIFF_CHECK(++passes < kGarbagePasses, "the garbage collector comes to an end");
    }
    process_->server.tick();
    while (!process_->posted.empty()) {
      const auto fn = std::move(process_->posted.front());
      process_->posted.pop_front();
      fn();
    }
  }

  void flush() override {
    SKIFF_CHECK(process_->store->flush().has_value(), "a healthy disk takes writes");
    promised_ = std::max(promised_, process_->client.promised());
  }

  bool safe() override { return process_->store->visible() >= process_->store->revision(); }

  std::uint64_t promised() override { return promised_; }

  void restart(bool power_cut) override {
    power_cut ? disk_->power_cut() : disk_->crash();
    process_.reset();
    start();
  }

 private:
  void start() {
    // Another seed for each life, or the second would give out the uids of the first again.
    process_ = std::make_unique<Process>(disk_, kinds_, registry_, clock_,
                                         seed_ + 0x9e3779b97f4a7c15 * ++lives_);
    flush();
  }

  const env::Clock& clock_;
  const std::uint64_t seed_;
  const std::vector<api::Kind> kinds_;
  const schema::Registry& registry_;
  const std::shared_ptr<store::MemoryDisk> disk_ = std::make_shared<store::MemoryDisk>();
  std::uint64_t lives_ = 0;
  store::Revision promised_ = 0;
  std::unique_ptr<Process> process_ = {};
};

}  // namespace

std::unique_ptr<Backend> make_backend(const Workload& workload, const env::Clock& clock,
                                      std::uint64_t seed) {
  return std::make_unique<StoreBackend>(workload, clock, seed);
}

}  // namespace skiff::sim
