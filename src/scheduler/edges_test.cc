// What lies at the edges of placement: ties, bounds, and what is said to whom.
#include <gtest/gtest.h>

#include "api/meta.h"
#include "scheduler/controller.h"
#include "scheduler/testing/desk.h"

namespace skiff::scheduler {
namespace {

using testing::bound;
using testing::Desk;
using testing::in_gang;
using testing::must_parse;
using testing::node;
using testing::pod;
using testing::share;
using testing::with_claim;

TEST(Tie, BetweenEqualNodesIsTheFirstOnes) {
  Desk desk;
  desk.node(node("n1", R"("cpu":"4")"));
  desk.node(node("n2", R"("cpu":"4")"));
  desk.pod(pod("a", ""));
  EXPECT_EQ(desk.placed(), "a>n1 ");
}

TEST(Tie, IsDecidedByTheNumberOfPods) {
  Desk desk;
  desk.node(node("n1", R"("cpu":"4","pods":"10")"));
  desk.node(node("n2", R"("cpu":"4","pods":"10")"));
  desk.pod(bound(pod("there", ""), "n1"));
  desk.pod(pod("a", ""));
  EXPECT_EQ(desk.placed(), "a>n2 ");
}

TEST(Port, OfTheMachineDoesNotMakeANodeFull) {
  Desk desk;
  desk.node(node("n1", R"("cpu":"4")"));
  desk.node(node("n2", R"("cpu":"2")"));
  desk.pod(must_parse(R"({"metadata":{"name":"a","namespace":"ns"},"spec":{"containers":[
      {"resources":{"requests":{"cpu":"1"}},"ports":[{"hostPort":80}]}]}})"));
  EXPECT_EQ(desk.placed(), "a>n2 ") << "packed by its CPUs";
}

TEST(Gang, IsAsUrgentAsItsMostUrgentAndAsOldAsItsOldestMember) {
  Desk urgent;
  urgent.node(node("n1", R"("cpu":"2")"));
  urgent.pod(in_gang(pod("g-0", R"("cpu":"1")"), "g", "2"));
  urgent.pod(in_gang(pod("g-1", R"("cpu":"1")", 0, R"(,"priority":10)"), "g", "2"));
  urgent.pod(pod("a", R"("cpu":"1")", 0, R"(,"priority":5)"));
  EXPECT_EQ(urgent.placed(), "g-0>n1 g-1>n1 ");
  Desk old;
  old.node(node("n1", R"("cpu":"2")"));
  old.pod(in_gang(pod("g-0", R"("cpu":"1")", 10), "g", "2"));
  old.pod(in_gang(pod("g-1", R"("cpu":"1")", 1), "g", "2"));
  old.pod(pod("a", R"("cpu":"1")", 5));
  EXPECT_EQ(old.placed(), "g-0>n1 g-1>n1 ");
}

TEST(Gang, StartsWithoutAMemberThatFitsNowhereWhereTheOthersAreEnough) {
  Desk desk;
  desk.node(node("n1", R"("cpu":"4")"));
  desk.pod(in_gang(pod("g-0", R"("cpu":"8")"), "g", "2"));
  desk.pod(in_gang(pod("g-1", R"("cpu":"1")"), "g", "2"));
  desk.pod(in_gang(pod("g-2", R"("cpu":"1")"), "g", "2"));
  EXPECT_EQ(desk.placed(), "g-1>n1 g-2>n1 ");
  EXPECT_NE(desk.why("g-0"), "does not wait");
}

TEST(Gang, ThatIsWholeLeavesALateMemberToItsOwnReason) {
  Desk desk;
  desk.node(node("n1", R"("cpu":"1")"));
  desk.pod(bound(in_gang(pod("g-0", ""), "g", "2"), "n1"));
  desk.pod(bound(in_gang(pod("g-1", ""), "g", "2"), "n1"));
  desk.pod(in_gang(pod("g-2", R"("cpu":"2")"), "g", "2"));
  EXPECT_EQ(desk.why("g-2"),
            "0/1 nodes are available: 1 Insufficient cpu (asks 2, free 1 of 1); the request is "
            "larger than any node it may run on");
}

TEST(Gang, LeansOnNoMoreMembersThanItNeeds) {
  Desk desk;
  desk.node(node("n1", R"("cpu":"9")"));
  for (const char* name : {"g-0", "g-1", "g-2"}) {
    desk.pod(bound(in_gang(pod(name, ""), "g", "2"), "n1"));
  }
  desk.pod(in_gang(pod("g-3", ""), "g", "2"));
  const Decisions decisions = desk.decide();
  ASSERT_EQ(decisions.gangs.size(), 1u);
  EXPECT_EQ(decisions.gangs[0].counted.size(), 1u)
      << "a change of any other must not make the binding fail";
}

constexpr std::string_view kExclusiveClaim =
    R"({"metadata":{"name":"c","namespace":"ns","uid":"c1","annotations":
        {"pv.kubernetes.io/bind-completed":"yes"}},
        "spec":{"volumeName":"pv","accessModes":["ReadWriteOncePod"]},"status":{"phase":"Bound"}})";

TEST(Claim, OfAGangThatCannotStartIsFreeForOthers) {
  Desk desk;
  desk.node(node("n1", R"("cpu":"2")"));
  desk.claim(kExclusiveClaim);
  desk.books.volume_changed(nullptr, share(must_parse(R"({"metadata":{"name":"pv"}})")));
  desk.pod(with_claim(in_gang(pod("g-0", R"("cpu":"1")"), "g", "2"), "c"));
  desk.pod(in_gang(pod("g-1", R"("cpu":"8")"), "g", "2"));
  desk.pod(with_claim(pod("z", R"("cpu":"1")", 5), "c"));
  desk.pod(with_claim(pod("zz", R"("cpu":"1")", 6), "c"));
  EXPECT_EQ(desk.placed(), "z>n1 ");
  EXPECT_NE(desk.why("zz").find("ReadWriteOncePod"), std::string::npos) << desk.why("zz");
}

TEST(Claim, ThatSeveralWantGetsItsNodeOnce) {
  Desk desk;
  desk.node(node("n1", R"("cpu":"2")"));
  desk.books.class_changed(nullptr, share(must_parse(
                                        R"({"metadata":{"name":"later"},
      "provisioner":"skiff.dev/local-path","volumeBindingMode":"WaitForFirstConsumer"})")));
  desk.claim(R"({"metadata":{"name":"c","namespace":"ns","uid":"c1"},
                 "spec":{"storageClassName":"later"}})");
  desk.pod(with_claim(pod("a", ""), "c"));
  desk.pod(with_claim(pod("b", "", 1), "c"));
  const Decisions decisions = desk.decide();
  ASSERT_EQ(decisions.selections.size(), 1u);
  EXPECT_EQ(decisions.selections[0].node, "n1");
}

TEST(Reason, CountsANodeOnceAndForWhatWeighsMost) {
  Desk desk;
  desk.node(node("n1", R"("cpu":"1")"));
  desk.node(node("n2", R"("cpu":"1")", "", R"(,"conditions":[{"type":"Ready","status":"False"}])"));
  desk.pod(pod("a", R"("cpu":"2")"));
  EXPECT_EQ(desk.why("a"),
            "0/2 nodes are available: 1 Insufficient cpu (asks 2, free 1 of 1), 1 node(s) were not "
            "ready; the request is larger than any node it may run on");
}

TEST(Reason, CallsARequestTooLargeOnlyWhereEveryNodeIsTooSmall) {
  Desk desk;
  desk.node(node("n1", R"("cpu":"1")"));
  desk.node(node("n2", R"("cpu":"4")"));
  desk.pod(bound(pod("there", R"("cpu":"3")"), "n2"));
  desk.pod(pod("a", R"("cpu":"2")"));
  EXPECT_EQ(desk.why("a"), "0/2 nodes are available: 2 Insufficient cpu (asks 2, most free 1 of 1)")
      << "n2 is large enough once it is free; of two that have as much the first is named";
}

TEST(FailedPod, DoesNotSpeakForOneThatMayGoElsewhere) {
  Desk desk;
  desk.node(node("n1", R"("cpu":"4")"));
  desk.pod(pod("a", R"("cpu":"1")", 0, R"(,"nodeSelector":{"host":"nowhere"})"));
  desk.pod(pod("b", R"("cpu":"1")", 1));
  EXPECT_EQ(desk.placed(), "b>n1 ");
}

// Room is held for who has waited for long.
struct Held : ::testing::Test {
  Desk desk;
  void SetUp() override { desk.now += kPatience + std::chrono::minutes(1); }
};

TEST_F(Held, WhereLeastIsToWaitForAndNotWhereItWouldBeFullest) {
  desk.node(node("n1", R"("cpu":"4")"));
  desk.node(node("n2", R"("cpu":"5")"));
  desk.pod(bound(pod("r1", R"("cpu":"3")"), "n1"));
  desk.pod(bound(pod("r2", R"("cpu":"2")"), "n2"));
  desk.pod(pod("large", R"("cpu":"4")"));
  desk.pod(pod("small", R"("cpu":"1")", 1));
  EXPECT_EQ(desk.placed(), "small>n1 ") << "three of n2's four are free already";
}

TEST_F(Held, WithoutRegardToHowManyPodsMayRunThere) {
  desk.node(node("n1", R"("cpu":"4","pods":"1")"));
  desk.node(node("n2", R"("cpu":"4")"));
  desk.pod(bound(pod("r1", ""), "n1"));
  desk.pod(bound(pod("r2", R"("cpu":"1")"), "n2"));
  desk.pod(pod("large", R"("cpu":"4")"));
  desk.pod(pod("small", R"("cpu":"1")", 1));
  EXPECT_EQ(desk.placed(), "small>n2 ") << "all of n1's CPUs are free: it waits for one pod to end";
}

TEST_F(Held, ForAsManyAsTheGangNeedsAndNoMore) {
  for (const char* name : {"n1", "n2"}) {
    desk.node(node(name, R"("cpu":"4")"));
    desk.pod(bound(pod(fmt::format("runs-on-{}", name), R"("cpu":"3")"), name));
  }
  for (const char* name : {"g-0", "g-1", "g-2"}) {
    desk.pod(in_gang(pod(name, R"("cpu":"2")"), "g", "2"));
  }
  desk.pod(pod("small", R"("cpu":"1")", 1));
  EXPECT_EQ(desk.placed(), "small>n2 ") << "two of the three fit on n1, the first of two equals";
}

TEST_F(Held, OnlyOfWhatIsLacking) {
  desk.node(node("n1", R"("cpu":"4","memory":"8Gi")"));
  desk.pod(bound(pod("stays", R"("cpu":"1","memory":"1Gi")"), "n1", "Always"));
  desk.pod(bound(pod("ends", R"("cpu":"1","memory":"1Gi")"), "n1"));
  desk.pod(pod("large", R"("cpu":"3","memory":"2Gi")"));
  desk.pod(pod("small", R"("memory":"4Gi")", 1));
  EXPECT_EQ(desk.placed(), "small>n1 ") << "eight, less two that run, less two for the large one";
  desk.pod(pod("small", R"("memory":"4097Mi")", 1));
  EXPECT_EQ(desk.placed(), "");
}

// The words of a pod that asks for more than the only node has.
constexpr std::string_view kWords =
    "0/1 nodes are available: 1 Insufficient cpu (asks 8, free 2 of 2); the request is larger than "
    "any node it may run on";

struct TellCase {
  std::string_view name;
  std::string known;  // the pod's condition, empty: none
  bool told;
};

void PrintTo(const TellCase& c, std::ostream* out) { *out << c.name; }

std::string condition(std::string_view message, std::string_view probed,
                      std::string_view status = "False") {
  return fmt::format(R"({{"type":"PodScheduled","status":"{}","message":"{}","lastProbeTime":"{}",)"
                     R"("lastTransitionTime":"2025-12-31T00:00:00Z"}})",
                     status, message, probed);
}

control::GlobalController scheduler_of(const std::vector<json::value>& pods) {
  control::GlobalController scheduler = make_scheduler();
  scheduler.changed(1, nullptr, share(node("n1", R"("cpu":"2")")));
  for (const json::value& each : pods) scheduler.changed(0, nullptr, share(each));
  return scheduler;
}

const Time kNow = *parse_time("2026-01-01T00:01:00Z");

class Telling : public ::testing::TestWithParam<TellCase> {};

TEST_P(Telling, WhyAPodWaits) {
  json::value waiting = pod("a", R"("cpu":"8")");
  if (!GetParam().known.empty()) {
    json::set(waiting, {"status", "conditions"}, json::array{must_parse(GetParam().known)});
  }
  const control::GlobalPlan plan = scheduler_of({waiting}).plan(kNow);
  EXPECT_EQ(plan.batches.size(), GetParam().told ? 1u : 0u);
  for (const control::Batch& batch : plan.batches) {
    ASSERT_EQ(batch.notes.size(), 1u);
    EXPECT_EQ(batch.notes[0].note,
              (control::Note{
                  .warning = true, .reason = "FailedScheduling", .message = std::string(kWords)}));
  }
}

constexpr std::string_view kSinceTen = "2026-01-01T00:00:50Z";

std::string in_other_numbers(std::string_view free) {
  return fmt::format(
      "0/1 nodes are available: 1 Insufficient cpu (asks 8, free {} of 2); the request is larger "
      "than any node it may run on",
      free);
}

INSTANTIATE_TEST_SUITE_P(
    All, Telling,
    ::testing::Values(
        TellCase{"never told", "", true}, TellCase{"told so", condition(kWords, kSinceTen), false},
        TellCase{"told so long ago", condition(kWords, "2020-01-01T00:00:00Z"), false},
        TellCase{"thought to be placed", condition(kWords, kSinceTen, "True"), true},
        TellCase{"told something else", condition("no such thing", kSinceTen), true},
        TellCase{"a number just now", condition(in_other_numbers("0"), kSinceTen), false},
        TellCase{"the last digit", condition(in_other_numbers("9"), kSinceTen), false},
        TellCase{"a fraction", condition(in_other_numbers("1.5"), kSinceTen), false},
        TellCase{"a number almost long ago",
                 condition(in_other_numbers("0"), "2026-01-01T00:00:31Z"), false},
        TellCase{"a number long ago", condition(in_other_numbers("0"), "2026-01-01T00:00:30Z"),
                 true},
        TellCase{"a number at no time", condition(in_other_numbers("0"), ""), true}));

TEST(Telling, KeepsOtherConditionsAndTheTimeOfTheChange) {
  json::value waiting = pod("a", R"("cpu":"8")");
  json::set(waiting, {"status", "conditions"},
            json::array{must_parse(R"({"type":"Initialized","status":"True"})"),
                        must_parse(condition("other", kSinceTen))});
  for (const char* status : {"False", "True"}) {
    waiting.at_pointer("/status/conditions/1").as_object()["status"] = status;
    const control::GlobalPlan plan = scheduler_of({waiting}).plan(kNow);
    ASSERT_EQ(plan.batches.size(), 1u);
    const json::value& written = plan.batches[0].writes[0].body;
    const json::array& conditions = json::get_array(written, {"status", "conditions"});
    ASSERT_EQ(conditions.size(), 2u);
    EXPECT_EQ(json::get_string(conditions[0], {"type"}), "Initialized");
    EXPECT_EQ(json::get_string(conditions[1], {"message"}), kWords);
    EXPECT_EQ(json::get_string(conditions[1], {"lastProbeTime"}), "2026-01-01T00:01:00Z");
    EXPECT_EQ(
        json::get_string(conditions[1], {"lastTransitionTime"}),
        std::string_view(status) == "False" ? "2025-12-31T00:00:00Z" : "2026-01-01T00:01:00Z");
  }
}

std::vector<std::string> told(const control::GlobalPlan& plan) {
  std::vector<std::string> out;
  for (const control::Batch& batch : plan.batches) out.push_back(batch.writes[0].name);
  return out;
}

TEST(Telling, BringsNumbersUpToDateForTheFirstHundredOnly) {
  std::vector<json::value> pods;
  for (int i = 0; i < 102; ++i) {
    pods.push_back(pod(fmt::format("p{:03}", i), R"("cpu":"8")"));
    json::set(pods.back(), {"status", "conditions"},
              json::array{must_parse(condition(in_other_numbers("0"), "2025-01-01T00:00:00Z"))});
  }
  const std::vector<std::string> names = told(scheduler_of(pods).plan(kNow));
  ASSERT_EQ(names.size(), 100u);
  EXPECT_EQ(names.back(), "p099");
}

TEST(Telling, LeavesAGangInPeaceThatIsStillBeingMadeFarBehind) {
  std::vector<json::value> pods;
  for (int i = 0; i < 99; ++i) pods.push_back(pod(fmt::format("p{:03}", i), R"("cpu":"8")"));
  pods.push_back(in_gang(pod("y", "", 1), "y", "2"));
  pods.push_back(in_gang(pod("z", "", 2), "z", "2"));
  const std::vector<std::string> names = told(scheduler_of(pods).plan(kNow));
  ASSERT_EQ(names.size(), 100u);
  EXPECT_EQ(names.back(), "y") << "the hundredth in line is told, the next is not";
}

}  // namespace
}  // namespace skiff::scheduler
