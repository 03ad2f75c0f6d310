#include "node/streams/pod_logs.h"

#include <gtest/gtest.h>

namespace skiff::node {
namespace {

struct Case {
  std::string_view sentence;
  std::string_view status;  // of container "main"
  bool previous;
  int attempt;  // -1: refused
  std::string_view message;
};

TEST(LogAttempt, FindsTheRunThatIsMeant) {
  const Case kCases[] = {
      {"a running container", R"({"state":{"running":{}},"containerID":"skiff://u.main.2"})", false,
       2, ""},
      {"one that ended", R"({"state":{"terminated":{}},"containerID":"skiff://u.main.0"})", false,
       0, ""},
      {"one that waits to run again shows its last run",
       R"({"state":{"waiting":{"reason":"CrashLoopBackOff"}},
           "lastState":{"terminated":{"containerID":"skiff://u.main.3"}}})",
       false, 3, ""},
      {"the run before",
       R"({"state":{"running":{}},"containerID":"skiff://u.main.1",
           "lastState":{"terminated":{"containerID":"skiff://u.main.0"}}})",
       true, 0, ""},
      {"there is no run before the first",
       R"({"state":{"running":{}},"containerID":"skiff://u.main.0"})", true, -1,
       "previous terminated container \"main\" in pod \"p\" not found"},
      {"one that has not started", R"({"state":{"waiting":{"reason":"ContainerCreating"}}})", false,
       -1, "container \"main\" in pod \"p\" is waiting to start: ContainerCreating"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.sentence);
    auto status = json::parse(c.status);
    ASSERT_TRUE(status);
    status->get_object()["name"] = "main";
    const json::value pod =
        json::object{{"metadata", {{"name", "p"}}},
                     {"spec", {{"containers", json::array{json::object{{"name", "main"}}}}}},
                     {"status", {{"containerStatuses", json::array{*status}}}}};
    const auto attempt = log_attempt(pod, "main", c.previous);
    if (c.attempt >= 0) {
      ASSERT_TRUE(attempt) << attempt.error().message;
      EXPECT_EQ(*attempt, c.attempt);
    } else {
      ASSERT_FALSE(attempt);
      EXPECT_EQ(attempt.error().code, Code::kBadRequest);
      EXPECT_EQ(attempt.error().message, c.message);
    }
    const auto other = log_attempt(pod, "other", false);
    ASSERT_FALSE(other);
    EXPECT_EQ(other.error().message, "container other is not valid for pod p");
  }
}

TEST(LogAttempt, FindsContainersThatWerePutIntoTheRunningPod) {
  const auto pod = json::parse(
      R"({"metadata":{"name":"p"},"spec":{"containers":[{"name":"main"}],
          "ephemeralContainers":[{"name":"debug"}]},"status":{"ephemeralContainerStatuses":[
          {"name":"debug","state":{"running":{}},"containerID":"skiff://u.debug.0"}]}})");
  ASSERT_TRUE(pod);
  const auto attempt = log_attempt(*pod, "debug", false);
  ASSERT_TRUE(attempt) << attempt.error().message;
  EXPECT_EQ(*attempt, 0);
}

}  // namespace
}  // namespace skiff::node
