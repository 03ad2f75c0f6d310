#include "cli/time_line.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/yaml.h"
#include "cli/testing/objects.h"

namespace skiff::cli {
namespace {

using testing::doc;
using testing::object;

Time at(int second) { return *parse_time("2026-11-15T12:00:00Z") + std::chrono::seconds(second); }

Object pod_placed(int placed, int started) {
  std::string status;
  if (placed >= 0) {
    status += fmt::format(
        "conditions: [{{type: PodScheduled, status: 'True', lastTransitionTime: "
        "'{}'}}]",
        rfc3339(at(placed)));
  }
  if (started >= 0) {
    status +=
        fmt::format(", containerStatuses: [{{name: c, state: {{running: {{startedAt: '{}'}}}}}}]",
                    rfc3339(at(started)));
  }
  return object("{kind: Pod, metadata: {name: p}, status: {" + status + "}}");
}

json::value job_with_status(const std::string& status) {
  return doc(
      "{kind: TFJob, metadata: {name: j, creationTimestamp: '2026-11-15T12:00:00Z'}, "
      "status: {" +
      status + "}}");
}

std::string text(const std::vector<Milestone>& line) {
  std::string out;
  for (const Milestone& one : line) {
    out += fmt::format("{}s {}\n",
                       std::chrono::duration_cast<std::chrono::seconds>(one.at - at(0)).count(),
                       one.what);
  }
  return out;
}

std::string text(const std::vector<Span>& spans) {
  std::string out;
  for (const Span& span : spans) {
    out += fmt::format("{} {}{}\n", span.what,
                       std::chrono::duration_cast<std::chrono::seconds>(span.took).count(),
                       span.open ? " so far" : "");
  }
  return out;
}

const char* const kWhole =
    "progress: {firstStepTime: '2026-11-15T12:00:20Z', replica: worker-0}, "
    "completionTime: '2026-11-15T12:01:00Z', conditions: [{type: Succeeded, status: 'True', "
    "lastTransitionTime: '2026-11-15T12:01:00Z'}]";

TEST(TimeLine, OfAJobFromCreationToEnd) {
  const std::vector<Object> events = {
      object("{reason: Pulled, message: Successfully pulled image, lastTimestamp: "
             "'2026-11-15T12:00:08Z'}"),
      object("{reason: Pulled, message: Container image already present, lastTimestamp: "
             "'2026-11-15T12:00:09Z'}"),
      object("{reason: TFJobRestarting, message: it restarts, count: 2, lastTimestamp: "
             "'2026-11-15T12:00:30Z'}")};
  EXPECT_EQ(
      text(time_line(job_with_status(kWhole), {pod_placed(2, 10), pod_placed(5, 12)}, events)),
      "0s created\n"
      "5s all 2 replica(s) have a place\n"
      "8s images are fetched\n"
      "12s all 2 replica(s) run or ran\n"
      "20s first step (worker-0)\n"
      "30s it restarts (x2, the latest)\n"
      "60s succeeded\n");
}

TEST(TimeLine, SaysHowManyGotAsFar) {
  EXPECT_EQ(text(time_line(job_with_status(""), {pod_placed(2, -1), pod_placed(-1, -1)}, {})),
            "0s created\n2s 1 of 2 replicas have a place\n");
  EXPECT_EQ(text(time_line(doc("{kind: TFJob, metadata: {name: j}}"), {}, {})), "");
}

TEST(TimeLine, SuspensionAndFailureAreTold) {
  const std::string status =
      "conditions: [{type: Suspended, status: 'False', lastTransitionTime: "
      "'2026-11-15T12:00:05Z'}, "
      "{type: Failed, status: 'True', message: it broke, lastTransitionTime: "
      "'2026-11-15T12:00:09Z'}]";
  EXPECT_EQ(text(time_line(job_with_status(status), {}, {})),
            "0s created\n5s resumed\n9s failed: it broke\n");
}

TEST(TimeLine, OfManyRestartsTheFirstAndTheLatestAreTold) {
  std::vector<Object> events;
  for (int i = 1; i <= 8; ++i) {
    events.push_back(object(fmt::format(
        "{{reason: TFJobRestarting, message: r{}, lastTimestamp: '{}'}}", i, rfc3339(at(i)))));
  }
  EXPECT_EQ(text(time_line(job_with_status(""), {}, events)),
            "0s created\n1s r1\n4s (3 more restarts)\n5s r5\n6s r6\n7s r7\n8s r8\n");
}

TEST(TimeSpent, HasNoGaps) {
  EXPECT_EQ(
      text(time_spent(job_with_status(kWhole), {pod_placed(2, 10), pod_placed(5, 12)}, at(500))),
      "waiting for a place 5\n"
      "images, volumes and start of programs 7\n"
      "programs until their first step 8\n"
      "training 40\n");
}

TEST(TimeSpent, OfAJobThatIsNotAsFarTheLastIsOpen) {
  EXPECT_EQ(text(time_spent(job_with_status(""), {}, at(9))), "waiting for a place 9 so far\n");
  EXPECT_EQ(text(time_spent(job_with_status(""), {pod_placed(2, -1), pod_placed(-1, -1)}, at(9))),
            "waiting for a place 9 so far\n");
  EXPECT_EQ(text(time_spent(job_with_status(""), {pod_placed(2, -1), pod_placed(3, -1)}, at(9))),
            "waiting for a place 3\nimages, volumes and start of programs 6 so far\n");
  EXPECT_EQ(text(time_spent(job_with_status(""), {pod_placed(2, 4)}, at(9))),
            "waiting for a place 2\nimages, volumes and start of programs 2\n"
            "programs until their first step 5 so far\n");
}

TEST(TimeSpent, ReplicasThatWereReplacedDoNotUndoTheFirstStep) {
  // Made again at second 30: its start lies behind the first step.
  EXPECT_EQ(text(time_spent(job_with_status("progress: {firstStepTime: '2026-11-15T12:00:20Z'}"),
                            {pod_placed(30, 31)}, at(50))),
            "waiting for a place 30\nimages, volumes and start of programs 1\n"
            "programs until their first step 0\ntraining 19 so far\n");
}

TEST(TimeLine, IsATableForPeople) {
  const std::string all = time_line_text(job_with_status(kWhole), {pod_placed(2, 10)}, {}, at(100));
  EXPECT_TRUE(all.starts_with("Time line:\n  TIME")) << all;
  EXPECT_TRUE(all.contains("  2026-11-15T12:01:00Z   60s")) << all;
  EXPECT_TRUE(all.contains("Where the time went:\n  waiting for a place")) << all;
  EXPECT_EQ(time_line_text(doc("{kind: TFJob}"), {}, {}, at(0)), "");
}

}  // namespace
}  // namespace skiff::cli
