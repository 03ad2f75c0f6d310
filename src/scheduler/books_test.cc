// What the books make of pods, nodes and claims, number by number.
#include <gtest/gtest.h>

#include "api/meta.h"
#include "scheduler/amount.h"
#include "scheduler/claims.h"
#include "scheduler/constraints.h"
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

TEST(Amounts, OfBytesAreShownInBinaryUnitsAndAllOthersAsTheyAre) {
  EXPECT_EQ(show_milli("memory", 1024 * 1000), "1Ki");
  EXPECT_EQ(show_milli("memory", 1023 * 1000), "1023");
  EXPECT_EQ(show_milli("ephemeral-storage", 2048 * 1000), "2Ki");
  EXPECT_EQ(show_milli("hugepages-2Mi", 2048LL * 1024 * 1000), "2Mi");
  EXPECT_EQ(show_milli("memory", 8LL * 1024 * 1024 * 1024 * 1024 * 1024 * 1000), "8Pi");
  EXPECT_EQ(show_milli("cpu", 4096 * 1000), "4096");
  EXPECT_EQ(show_milli("nvidia.com/memory", 4096 * 1000), "4096");
  EXPECT_EQ(show_milli("cpu", 1001), "1.001");
}

TEST(Requests, CountEveryContainerOnceAndNothingElse) {
  Desk desk;
  desk.pod(pod("a", R"("cpu":"1m","memory":"0")"));
  EXPECT_EQ(desk.asks("a", "cpu"), 1) << "a thousandth is something";
  EXPECT_EQ(desk.asks("a", "memory"), -1) << "nothing is not asked for";
  EXPECT_EQ(desk.asks("a", "pods"), 1000);
  desk.pod(pod("b", R"("cpu":"1")", 0, R"(,"overhead":{"cpu":"250m","memory":"1Ki"})"));
  EXPECT_EQ(desk.asks("b", "cpu"), 1250);
  EXPECT_EQ(desk.asks("b", "memory"), 1024 * 1000);
}

TEST(Requests, OfAnInitContainerComeOnTopOfSidecarsThatStarted) {
  Desk desk;
  desk.pod(pod("a", R"("cpu":"1")", 0, R"(,"initContainers":[
      {"restartPolicy":"Always","resources":{"requests":{"cpu":"1"}}},
      {"resources":{"requests":{"cpu":"2"}}}])"));
  EXPECT_EQ(desk.asks("a", "cpu"), 3000) << "one that stays and two that pass, before the rest";
}

TEST(Requests, OfPortsAreThoseOfTheMachineAndOfWhatStays) {
  Desk desk;
  desk.pod(pod("a", "", 0, R"(,"initContainers":[
      {"ports":[{"hostPort":7}]},
      {"restartPolicy":"Always","ports":[{"hostPort":8},{"containerPort":9},{"hostPort":0},
                                         {"hostPort":1,"protocol":"UDP"}]}])"));
  EXPECT_EQ(desk.asks("a", "hostPort/TCP/7"), -1) << "it is over before the others start";
  EXPECT_EQ(desk.asks("a", "hostPort/TCP/8"), 1000);
  EXPECT_EQ(desk.asks("a", "hostPort/UDP/1"), 1000);
  EXPECT_EQ(desk.waiting("a").requests.size(), 3u) << "the pod itself and two ports";
}

TEST(WaitingPod, IsReadWithItsPriorityAndAge) {
  Desk desk;
  desk.pod(pod("a", "", 65));
  EXPECT_EQ(desk.waiting("a").priority, 0);
  EXPECT_EQ(desk.waiting("a").created, *parse_time("2026-01-01T00:01:05Z"));
  desk.pod(pod("b", "", 0, R"(,"priority":-5)"));
  EXPECT_EQ(desk.waiting("b").priority, -5);
}

TEST(Gang, IsANameAndANumber) {
  struct Case {
    std::string_view gang, min, expected;
  };
  for (const Case& c :
       {Case{"g", "2", "ns/g"}, Case{"g", "1", "ns/g"}, Case{"g", "", ""}, Case{"g", "0", ""},
        Case{"g", "2x", ""}, Case{"g", "x", ""}, Case{"g", "-2", ""}, Case{"", "2", ""}}) {
    Desk desk;
    desk.pod(in_gang(pod("a", ""), c.gang, c.min));
    EXPECT_EQ(desk.waiting("a").gang, c.expected) << c.gang << " " << c.min;
  }
}

TEST(Gang, MayBeNamedByThePodGroupsLabel) {
  json::value labelled = in_gang(pod("a", ""), "", "2");
  json::set(labelled, {"metadata", "labels"}, json::object{{kPodGroupLabel, "group"}});
  Desk desk;
  desk.pod(labelled);
  EXPECT_EQ(desk.waiting("a").gang, "ns/group");
  EXPECT_EQ(desk.waiting("a").gang_min, 2u);
  json::set(labelled, {"metadata", "annotations", kGangAnnotation}, "own");
  desk.pod(labelled);
  EXPECT_EQ(desk.waiting("a").gang, "ns/own") << "our own name goes first";
}

TEST(Signature, IsTheSameOnlyForPodsThatFitTheSameNodes) {
  Desk desk;
  desk.pod(pod("plain", R"("cpu":"1")"));
  desk.pod(pod("twin", R"("cpu":"1")", 9));
  desk.pod(pod("more", R"("cpu":"2")"));
  desk.pod(pod("choosy", R"("cpu":"1")", 0, R"(,"nodeSelector":{"host":"n1"})"));
  desk.pod(pod("tough", R"("cpu":"1")", 0, R"(,"tolerations":[{"operator":"Exists"}])"));
  desk.pod(pod("fond", R"("cpu":"1")", 0, R"(,"affinity":{"nodeAffinity":{"x":1}})"));
  desk.pod(with_claim(pod("claims", R"("cpu":"1")"), "c"));
  const std::string plain = desk.waiting("plain").signature;
  EXPECT_EQ(desk.waiting("twin").signature, plain);
  for (const char* other : {"more", "choosy", "tough", "fond", "claims"}) {
    EXPECT_NE(desk.waiting(other).signature, plain) << other;
  }
}

TEST(Placed, HoldsMembersOfGangsWhileTheyAreThere) {
  Desk desk;
  desk.pod(bound(pod("alone", ""), "n1"));
  EXPECT_TRUE(desk.books.snapshot().placed.empty()) << "it is of no gang";
  const json::value member = bound(in_gang(pod("a", ""), "g", "2"), "n1");
  desk.pod(member);
  ASSERT_EQ(desk.books.snapshot().placed.count("ns/g"), 1u);
  EXPECT_EQ(desk.books.snapshot().placed.at("ns/g").size(), 1u);
  desk.pod(bound(in_gang(pod("b", ""), "g", "2"), "n1"));
  desk.gone(member);
  ASSERT_EQ(desk.books.snapshot().placed.count("ns/g"), 1u) << "the other one is there still";
  EXPECT_EQ(desk.books.snapshot().placed.at("ns/g").size(), 1u);
  desk.gone(bound(in_gang(pod("b", ""), "g", "2"), "n1"));
  EXPECT_TRUE(desk.books.snapshot().placed.empty());
  for (const char* phase : {"Succeeded", "Failed"}) {
    json::value over = member;
    json::set(over, {"status", "phase"}, phase);
    desk.pod(member);
    desk.books.pod_changed(share(member), share(over));
    EXPECT_TRUE(desk.books.snapshot().placed.empty()) << phase;
  }
}

TEST(Used, IsWhatRunsAndLastingWhatDoesNotEndByItself) {
  Desk desk;
  json::value over = bound(in_gang(pod("over", R"("cpu":"1")"), "g", "2"), "n1");
  json::set(over, {"status", "phase"}, "Succeeded");
  desk.pod(over);
  EXPECT_TRUE(desk.books.snapshot().used.empty()) << "it has ended and keeps no room";
  desk.pod(bound(pod("stays", R"("cpu":"1")"), "n1", "Always"));
  desk.pod(bound(pod("ends", R"("cpu":"2")"), "n1", "Never"));
  const std::size_t cpu = 1;
  ASSERT_EQ(desk.books.snapshot().resources[cpu], "cpu");
  EXPECT_EQ(desk.books.snapshot().used.at("n1")[cpu], 3000);
  EXPECT_EQ(desk.books.snapshot().lasting.at("n1")[cpu], 1000);
  EXPECT_EQ(desk.books.snapshot().lasting.at("n1")[kPodCount], 1000);
  desk.gone(bound(pod("stays", R"("cpu":"1")"), "n1", "Always"));
  EXPECT_EQ(desk.books.snapshot().used.at("n1")[cpu], 2000);
  EXPECT_EQ(desk.books.snapshot().lasting.at("n1")[cpu], 0);
}

TEST(Objects, ThatAreGoneAreForgotten) {
  Desk desk;
  const Object object = share(must_parse(R"({"metadata":{"name":"x","namespace":"ns"}})"));
  desk.books.claim_changed(nullptr, object);
  desk.books.volume_changed(nullptr, object);
  desk.books.class_changed(nullptr, object);
  EXPECT_EQ(desk.books.snapshot().claims.size(), 1u);
  EXPECT_EQ(desk.books.snapshot().volumes.size(), 1u);
  EXPECT_EQ(desk.books.snapshot().classes.size(), 1u);
  desk.books.claim_changed(object, nullptr);
  desk.books.volume_changed(object, nullptr);
  desk.books.class_changed(object, nullptr);
  EXPECT_TRUE(desk.books.snapshot().claims.empty());
  EXPECT_TRUE(desk.books.snapshot().volumes.empty());
  EXPECT_TRUE(desk.books.snapshot().classes.empty());
}

TEST(Claim, BoundToAVolumeThatIsNotSeenYetIsAMomentsMatter) {
  Desk desk;
  desk.node(node("n1", R"("cpu":"2")"));
  desk.claim(R"({"metadata":{"name":"c","namespace":"ns","uid":"c1","annotations":
      {"pv.kubernetes.io/bind-completed":"yes"}},
      "spec":{"volumeName":"pv"},"status":{"phase":"Bound"}})");
  desk.pod(with_claim(pod("a", R"("cpu":"1")"), "c"));
  const ClaimsView view = view_claims(desk.books.snapshot(), desk.waiting("a"));
  EXPECT_TRUE(view.coming);
  EXPECT_FALSE(view.blocked);
  desk.pod(pod("b", R"("cpu":"1")", 1));
  EXPECT_EQ(desk.placed(), "b>n1 ") << "and one CPU is kept for the first";
  EXPECT_EQ(desk.why("a"), "does not wait") << "there is nothing to tell yet";
  desk.pod(pod("c", R"("cpu":"1")", 2));
  EXPECT_EQ(desk.placed(), "b>n1 ");
}

struct TolerationCase {
  std::string_view name, tolerations;
  bool tolerated;
};

void PrintTo(const TolerationCase& c, std::ostream* out) { *out << c.name; }

class Tolerations : public ::testing::TestWithParam<TolerationCase> {};

TEST_P(Tolerations, OfATaint) {
  Desk desk;
  desk.node(node("n1", R"("cpu":"2")", R"("taints":[
      {"key":"spot","value":"yes","effect":"PreferNoSchedule"},
      {"key":"gpu","value":"yes","effect":"NoSchedule"}])"));
  desk.pod(pod("a", "", 0, fmt::format(R"(,"tolerations":[{}])", GetParam().tolerations)));
  if (GetParam().tolerated) {
    EXPECT_EQ(desk.placed(), "a>n1 ");
  } else {
    EXPECT_EQ(desk.why("a"), "0/1 nodes are available: 1 node(s) had untolerated taint {gpu: yes}");
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, Tolerations,
    ::testing::Values(
        TolerationCase{"none", "", false},
        TolerationCase{"this one", R"({"key":"gpu","value":"yes","effect":"NoSchedule"})", true},
        TolerationCase{"of any effect", R"({"key":"gpu","value":"yes"})", true},
        TolerationCase{"of another effect", R"({"key":"gpu","value":"yes","effect":"NoExecute"})",
                       false},
        TolerationCase{"of another value", R"({"key":"gpu","value":"no"})", false},
        TolerationCase{"of any value", R"({"key":"gpu","operator":"Exists"})", true},
        TolerationCase{"of another key", R"({"key":"tpu","operator":"Exists"})", false},
        TolerationCase{"of another key with its value", R"({"key":"tpu","value":"yes"})", false},
        TolerationCase{"of all", R"({"operator":"Exists"})", true},
        TolerationCase{"of no key and no operator", R"({"value":"yes"})", false},
        TolerationCase{"the second of two",
                       R"({"key":"tpu","value":"no"},{"key":"gpu","value":"yes"})", true}));

}  // namespace
}  // namespace skiff::scheduler
