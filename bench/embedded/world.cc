#include "bench/embedded/world.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "api/builtin.h"
#include "base/check.h"
#include "features/nodes/feature.h"
#include "features/storage/feature.h"
#include "scheduler/controller.h"
#include "store/sqlite_journal.h"

namespace skiff::bench {
namespace {

std::unique_ptr<store::Store> open_store(const std::string& folder) {
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  auto journal = store::open_sqlite_journal(folder + "/objects.db");
  SKIFF_CHECK(journal.has_value(), "a fresh folder can hold a store");
  auto store = store::Store::open(std::move(*journal), store::Store::Writer::kThread);
  SKIFF_CHECK(store.has_value(), "an empty store can be opened");
  return std::move(*store);
}

void log(std::string_view line) { fmt::print(stderr, "bench: {}\n", line); }

// Turns that hold up others, with what they spent their time on, where the bench tells its phases.
std::function<void(const control::TurnCost&)> long_turns() {
  if (std::getenv("SKIFF_BENCH_PHASES") == nullptr) return {};
  return [](const control::TurnCost& cost) {
    const auto ms = [](Duration d) { return std::chrono::duration<double, std::milli>(d).count(); };
    const double total = ms(cost.feeds + cost.barriers + cost.plans + cost.batches + cost.events);
    if (total < 30) return;
    fmt::print(stderr,
               "  turn of {:.0f} ms: feeds {:.0f}, barriers {:.0f}, plans {:.0f} ({} {:.0f}), "
               "batches {:.0f}, events {:.0f}\n",
               total, ms(cost.feeds), ms(cost.barriers), ms(cost.plans), cost.dearest,
               ms(cost.dearest_took), ms(cost.batches), ms(cost.events));
  };
}

}  // namespace

EmbeddedWorld::EmbeddedWorld(const std::string& folder)
    : registry_(api::builtin_definitions()),
      features_(assembly::all_features(registry_)),
      store_(open_store(folder)),
      server_(std::make_unique<apiserver::Server>(*store_, features_.kinds, registry_, clock_, 1,
                                                  apiserver::ServerOptions{})) {
  SKIFF_CHECK(server_->bootstrap().has_value(), "an empty store takes the first objects");
  control_client_ = std::make_unique<client::LocalClient>(
      *server_, [this](auto fn) { loop_.post(std::move(fn)); },
      [this](auto fn) { writer_.post(std::move(fn)); });
  writer_.start([] { return Duration(std::chrono::hours(1)); });
  planner_.start([] { return Duration(std::chrono::hours(1)); });
  control_ = std::make_unique<control::Runtime>(
      *control_client_, clock_,
      control::RuntimeOptions{.wake = [this] { loop_.wake(); },
                              .log = log,
                              .elsewhere = assembly::aside(planner_, loop_),
                              .turned = long_turns()});
  for (const auto* controllers : {&features_.controllers, &features_.embedded_controllers}) {
    for (const control::Controller& controller : *controllers) {
      control_->add(metrics_.metered(controller));
    }
  }
  control_->add(metrics_.counter());
  control_->add(storage::make({.folder = folder + "/volumes"}));
  control_->add(nodes::make());
  control_->add(scheduler::make_scheduler());
  upkeep_ = std::make_unique<assembly::Upkeep>(
      *store_, clock_, [this] { return server_->collect_garbage(); }, [this] { server_->tick(); });
  loop_.start([this] { return control_->pump(); });
}

EmbeddedWorld::~EmbeddedWorld() {
  upkeep_.reset();
  writer_.stop();
  planner_.stop();
  loop_.stop();
  control_.reset();
}

std::unique_ptr<client::LocalClient> EmbeddedWorld::client() {
  return std::make_unique<client::LocalClient>(*server_,
                                               [this](auto fn) { loop_.post(std::move(fn)); });
}

EmbeddedWorld::Cpu EmbeddedWorld::cpu_seconds() {
  return {.loop = loop_.cpu_seconds(),
          .writer = writer_.cpu_seconds(),
          .planner = planner_.cpu_seconds(),
          .upkeep = upkeep_->cpu_seconds()};
}

}  // namespace skiff::bench
