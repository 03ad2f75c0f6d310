#include "control/events.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "api/meta.h"
#include "control/runtime.h"
#include "control/testing/memory_server.h"
#include "control/testing/resources.h"
#include "env/sim/clock.h"

namespace skiff::control {
namespace {

using testing::kEvents;

using namespace std::chrono_literals;

const api::Resource kNotedRoots = {
    .group = "test.dev", .version = "v1", .plural = "echoes", .kind = "Echo"};

// A server that answers submits when it is told to.
class HeldServer : public testing::MemoryServer {
 public:
  using MemoryServer::MemoryServer;
  void submit(std::vector<client::Write> writes, Done done) override {
    waiting.emplace_back(std::move(writes), std::move(done));
  }
  void answer_one() {
    auto [writes, done] = std::move(waiting.front());
    waiting.pop_front();
    MemoryServer::submit(std::move(writes), std::move(done));
  }
  std::deque<std::pair<std::vector<client::Write>, Done>> waiting = {};
};

class Recorder : public ::testing::Test {
 protected:
  env::sim::Clock clock;
  HeldServer server{clock};
  std::unique_ptr<EventRecorder> recorder = std::make_unique<EventRecorder>(server, clock);

  void record(int i, bool warning = false) {
    recorder->record(about, "tester",
                     {.warning = warning, .reason = "R", .message = std::to_string(i)});
  }
  void drain() {
    for (int i = 0; i < 100'000; ++i) {
      const bool more = recorder->write_some();
      if (!server.waiting.empty()) {
        server.answer_one();
      } else if (!more) {
        return;
      }
    }
    ADD_FAILURE() << "never done";
  }
  std::vector<Object> events() { return server.list(kEvents, {}, {})->items; }

  const Object about = std::make_shared<const json::value>(json::object{
      {"apiVersion", "test.dev/v1"},
      {"kind", "Echo"},
      {"metadata", {{"name", "a"}, {"namespace", "ns"}, {"uid", "u"}, {"resourceVersion", "7"}}}});
};

TEST_F(Recorder, SaysWhatAnEventIsAbout) {
  recorder->record(about, "tester", {.warning = true, .reason = "Bad", .message = "so it is"});
  drain();
  ASSERT_EQ(events().size(), 1U);
  const json::value& event = *events()[0];
  EXPECT_EQ(api::ns(event), "ns");
  EXPECT_EQ(
      api::name(event),
      event_name(*about, "tester", {.warning = true, .reason = "Bad", .message = "so it is"}));
  EXPECT_EQ(json::serialize(*json::find(event, {"involvedObject"})),
            R"({"kind":"Echo","namespace":"ns","name":"a","uid":"u",)"
            R"("apiVersion":"test.dev/v1","resourceVersion":"7"})");
  EXPECT_EQ(json::get_string(event, {"source", "component"}), "tester");
  EXPECT_EQ(json::get_string(event, {"type"}), "Warning");
}

TEST_F(Recorder, WaitsForAnswersBeforeItWritesMore) {
  for (int i = 0; i < 300; ++i) record(i);
  EXPECT_TRUE(recorder->write_some());
  EXPECT_FALSE(recorder->write_some()) << "nothing to do until the server has answered";
  EXPECT_EQ(server.waiting.size(), 100U);
  server.answer_one();
  EXPECT_FALSE(recorder->write_some());
  EXPECT_EQ(server.waiting.size(), 100U);
  drain();
  EXPECT_EQ(events().size(), 300U);
}

TEST_F(Recorder, FullOfEventsStillTakesWarnings) {
  for (int i = 0; i < 20'000; ++i) record(i);
  record(-1);
  record(-2, true);
  drain();
  std::size_t warnings = 0, late = 0;
  for (const Object& event : events()) {
    if (json::get_string(*event, {"type"}) == "Warning") ++warnings;
    if (json::get_string(*event, {"message"}) == "-1") ++late;
  }
  EXPECT_EQ(events().size(), 20'000U);
  EXPECT_EQ(warnings, 1U);
  EXPECT_EQ(late, 0U);
}

TEST_F(Recorder, MayBeGoneWhenItsAnswersCome) {
  record(1);
  recorder->write_some();
  recorder.reset();
  server.answer_one();
  EXPECT_EQ(events().size(), 1U);
}

// What a root says of itself changes at once with each change of its spec.
TEST(Rest, LetsWhatHappensAfterAWriteBecomeOnePlan) {
  env::sim::Clock clock;
  testing::MemoryServer server(clock);
  int plans = 0;
  Runtime runtime(server, clock, {.rest = 100ms});
  runtime.add(
      Controller{.name = "c", .root = kNotedRoots, .plan = [&](const Observed& observed, Time) {
                   ++plans;
                   const auto now = json::get_int(*observed.root, {"status", "seen"});
                   const auto wish = json::get_int(*observed.root, {"metadata", "n"});
                   Plan plan;
                   if (now != wish) plan.status = json::object{{"seen", wish.value_or(0)}};
                   return plan;
                 }});
  const auto wish = [&](int n) {
    ASSERT_TRUE(server.write({.verb = client::Verb::kMergePatch,
                              .resource = kNotedRoots,
                              .ns = "ns",
                              .name = "a",
                              .body = json::object{{"metadata", {{"n", n}}}}}));
  };
  const auto pump = [&] {
    Duration next{0};
    for (int i = 0; i < 10; ++i) next = runtime.pump();
    return next;
  };
  ASSERT_TRUE(server.write({.resource = kNotedRoots,
                            .ns = "ns",
                            .body = json::object{{"metadata", {{"name", "a"}, {"n", 1}}}}}));
  pump();
  EXPECT_EQ(plans, 1) << "the first at once";
  wish(2);
  wish(3);
  EXPECT_LE(pump(), 100ms);
  EXPECT_EQ(plans, 1);
  clock.advance(100ms);
  pump();
  EXPECT_EQ(plans, 2);
  EXPECT_EQ(json::get_int(*server.get(kNotedRoots, "ns", "a"), {"status", "seen"}), 3);
}

}  // namespace
}  // namespace skiff::control
