#include "features/workloads/cron_job.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "control/testing/laws.h"
#include "features/workloads/cron_times.h"
#include "features/workloads/testing/cluster.h"

namespace skiff::workloads {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::Cluster;
using Strings = std::vector<std::string>;

Result<TimeZone> zones(const std::string& name) {
  if (name.empty()) return TimeZone();
  if (name == "Asia/Kolkata") return TimeZone::fixed(minutes(330));
  return fail(Code::kNotFound, "unknown time zone " + name);
}

json::value cron_job(std::string_view schedule, std::string_view policy = "Allow") {
  return {{"metadata", {{"name", "tick"}}},
          {"spec",
           {{"schedule", json::string(schedule)},
            {"concurrencyPolicy", json::string(policy)},
            {"successfulJobsHistoryLimit", 2},
            {"failedJobsHistoryLimit", 1},
            {"jobTemplate",
             {{"metadata", {{"labels", {{"app", "tick"}}}, {"annotations", {{"note", "x"}}}}},
              {"spec", {{"template", testing::pod_template()}}}}}}}};
}

json::value job_ended(std::string_view type, Time started, Time at) {
  json::object status{
      {"startTime", rfc3339(started)},
      {"conditions", json::array{json::object{{"type", json::string(type)}, {"status", "True"}}}}};
  if (type == "Complete") status["completionTime"] = rfc3339(at);
  return {{"status", std::move(status)}};
}

struct CronJobs : ::testing::Test {
  Cluster cluster{{cron_job_controller(zones)}};

  void make(json::value cron) {
    // On the minute, so that tests can count.
    const auto into = cluster.now() - std::chrono::floor<hours>(cluster.now());
    cluster.pass(hours(1) - into);
    testing::create(cluster.client(), cron_job_resource(), std::move(cron));
    cluster.settle();
  }
  void change(json::value body) { cluster.patch(cron_job_resource(), "tick", std::move(body)); }
  json::value object() { return cluster.get(cron_job_resource(), "tick"); }
  std::string status(std::string_view field) {
    return std::string(json::get_string(object(), {"status", field}));
  }
  std::size_t active() { return json::get_array(object(), {"status", "active"}).size(); }
  std::vector<Object> jobs() { return cluster.of(job_resource()); }
  std::string name_at(Time t) {
    return fmt::format("tick-{}", std::chrono::floor<minutes>(t.time_since_epoch()).count());
  }
  void finish(std::string_view name, std::string_view type) {
    testing::change(cluster.client(), job_resource(), name,
                    job_ended(type, cluster.now() - seconds(5), cluster.now()), "status");
    cluster.settle();
  }
  // Time passes as it does: a little at a time.
  void run(Duration time) {
    for (Duration done{0}; done < time; done += seconds(10)) cluster.pass(seconds(10));
  }
};

TEST_F(CronJobs, start_a_job_at_each_time_of_the_schedule) {
  make(cron_job("*/5 * * * *"));
  const Time created = std::chrono::floor<minutes>(cluster.now());
  run(minutes(4));
  EXPECT_TRUE(jobs().empty());
  run(minutes(2));
  ASSERT_EQ(jobs().size(), 1U);
  const json::value& job = *jobs()[0];
  EXPECT_EQ(api::name(job), name_at(created + minutes(5)));
  EXPECT_EQ(api::label(job, "app"), "tick");
  EXPECT_EQ(api::annotation(job, "note"), "x");
  EXPECT_EQ(api::annotation(job, "batch.kubernetes.io/cronjob-scheduled-timestamp"),
            rfc3339(created + minutes(5)));
  EXPECT_TRUE(api::controlled_by(job, api::uid(object())));
  EXPECT_EQ(json::get_object(job, {"spec"}),
            json::get_object(object(), {"spec", "jobTemplate", "spec"}));
  EXPECT_EQ(status("lastScheduleTime"), rfc3339(created + minutes(5)));
  ASSERT_EQ(active(), 1U);
  EXPECT_EQ(json::get_string(json::get_array(object(), {"status", "active"})[0], {"uid"}),
            api::uid(job));
  EXPECT_EQ(cluster.told("SuccessfulCreate", "Created job tick-"), 1);
  run(minutes(5));
  EXPECT_EQ(jobs().size(), 2U);
}

TEST_F(CronJobs, remember_what_ended_and_tell_of_it) {
  make(cron_job("*/5 * * * *"));
  run(minutes(6));
  const std::string first(api::name(*jobs()[0]));
  finish(first, "Complete");
  EXPECT_EQ(active(), 0U);
  EXPECT_EQ(status("lastSuccessfulTime"), rfc3339(cluster.now()).substr(0, 20));
  EXPECT_EQ(cluster.told("SawCompletedJob",
                         fmt::format("Saw completed job: {}, condition: Complete", first)),
            1);
  run(minutes(5));
  testing::remove(cluster.client(), job_resource(), api::name(*jobs()[1]));
  cluster.settle();
  EXPECT_EQ(active(), 0U);
  EXPECT_EQ(cluster.told("MissingJob", "Active job went missing: tick-"), 1);
  EXPECT_EQ(jobs().size(), 1U) << "it is not made again";
}

TEST_F(CronJobs, that_forbid_wait_and_then_make_up_for_the_last_one) {
  make(cron_job("*/5 * * * *", "Forbid"));
  run(minutes(17));
  ASSERT_EQ(jobs().size(), 1U);
  EXPECT_EQ(cluster.told("JobAlreadyActive"), 1);
  const std::string first(api::name(*jobs()[0]));
  finish(first, "Complete");
  ASSERT_EQ(jobs().size(), 2U);
  EXPECT_EQ(api::name(*jobs()[1]), name_at(cluster.now() - minutes(2)));
}

TEST_F(CronJobs, that_forbid_wait_for_one_that_is_being_deleted) {
  make(cron_job("*/5 * * * *", "Forbid"));
  run(minutes(6));
  ASSERT_EQ(jobs().size(), 1U);
  const std::string first(api::name(*jobs()[0]));
  testing::change(cluster.client(), job_resource(), first,
                  json::object{{"metadata", {{"finalizers", json::array{"example.org/wait"}}}}});
  testing::remove(cluster.client(), job_resource(), first);
  run(minutes(10));
  EXPECT_EQ(jobs().size(), 1U) << "its pods may still run";
}

TEST_F(CronJobs, that_replace_end_the_one_before) {
  make(cron_job("*/5 * * * *", "Replace"));
  run(minutes(6));
  const std::string first(api::name(*jobs()[0]));
  run(minutes(5));
  ASSERT_EQ(jobs().size(), 1U);
  EXPECT_NE(api::name(*jobs()[0]), first);
  EXPECT_EQ(active(), 1U);
  EXPECT_EQ(cluster.told("SuccessfulDelete", "Deleted job " + first), 1);
}

TEST_F(CronJobs, that_are_suspended_start_nothing_and_then_only_the_last_one_missed) {
  make(cron_job("*/5 * * * *"));
  change({{"spec", {{"suspend", true}}}});
  run(minutes(23));
  EXPECT_TRUE(jobs().empty());
  change({{"spec", {{"suspend", false}}}});
  ASSERT_EQ(jobs().size(), 1U);
  EXPECT_EQ(api::name(*jobs()[0]), name_at(cluster.now() - minutes(3)));
}

TEST_F(CronJobs, start_nothing_later_than_the_deadline) {
  json::value cron = cron_job("*/5 * * * *");
  json::set(cron, {"spec", "startingDeadlineSeconds"}, 60);
  json::set(cron, {"spec", "suspend"}, true);
  make(std::move(cron));
  run(minutes(23));
  change({{"spec", {{"suspend", false}}}});
  EXPECT_TRUE(jobs().empty());
  run(minutes(3));
  EXPECT_EQ(jobs().size(), 1U);
}

TEST_F(CronJobs, count_from_the_last_start_where_they_say_every) {
  json::value cron = cron_job("@every 7m");
  json::set(cron, {"spec", "startingDeadlineSeconds"}, 60);
  make(std::move(cron));
  run(minutes(15));
  EXPECT_EQ(jobs().size(), 2U);
}

TEST_F(CronJobs, say_when_they_missed_more_than_a_hundred) {
  make(cron_job("* * * * *"));
  change({{"spec", {{"suspend", true}}}});
  cluster.pass(hours(3));
  change({{"spec", {{"suspend", false}}}});
  EXPECT_EQ(jobs().size(), 1U);
  EXPECT_EQ(cluster.told("TooManyMissedTimes"), 1);
}

TEST_F(CronJobs, keep_as_many_ended_jobs_as_they_are_told) {
  make(cron_job("*/5 * * * *"));
  for (int i = 0; i < 4; ++i) {
    run(minutes(5));
    finish(name_at(cluster.now()), "Complete");
  }
  EXPECT_EQ(jobs().size(), 2U);
  for (int i = 0; i < 3; ++i) {
    run(minutes(5));
    finish(name_at(cluster.now()), "Failed");
  }
  EXPECT_EQ(jobs().size(), 3U);
  EXPECT_EQ(api::name(*jobs()[2]), name_at(cluster.now())) << "the newest stays";
  EXPECT_EQ(cluster.told("SuccessfulDelete", "Deleted job tick-"), 4);
}

TEST_F(CronJobs, read_the_schedule_by_the_clock_of_their_zone) {
  json::value cron = cron_job("0 9 * * *");
  json::set(cron, {"spec", "timeZone"}, "Asia/Kolkata");
  make(std::move(cron));
  cluster.pass(hours(24));
  ASSERT_EQ(jobs().size(), 1U);
  EXPECT_TRUE(status("lastScheduleTime").ends_with("T03:30:00Z"));
  EXPECT_TRUE(api::annotation(*jobs()[0], "batch.kubernetes.io/cronjob-scheduled-timestamp")
                  .ends_with("T09:00:00+05:30"));
}

TEST_F(CronJobs, say_that_a_zone_or_a_schedule_makes_no_sense) {
  json::value cron = cron_job("0 9 * * *");
  json::set(cron, {"spec", "timeZone"}, "Mars/Base");
  make(std::move(cron));
  EXPECT_EQ(cluster.told("UnknownTimeZone",
                         "invalid timeZone: \"Mars/Base\": unknown time zone Mars/Base"),
            1);
  change({{"spec", {{"timeZone", nullptr}, {"schedule", "0 0 31 2 *"}}}});
  EXPECT_EQ(cluster.told("InvalidSchedule", "invalid schedule: 0 0 31 2 *"), 1);
  change({{"spec", {{"schedule", "what?"}}}});
  EXPECT_EQ(cluster.told("UnparseableSchedule", "unparseable schedule: \"what?\""), 1);
  cluster.pass(hours(48));
  EXPECT_TRUE(jobs().empty());
}

TEST_F(CronJobs, leave_jobs_that_a_person_started_out_of_account) {
  make(cron_job("*/5 * * * *", "Forbid"));
  testing::create(
      cluster.client(), job_resource(),
      {{"metadata",
        {{"name", "manual"}, {"ownerReferences", json::array{api::owner_reference(object())}}}}});
  cluster.settle();
  EXPECT_EQ(active(), 0U);
  EXPECT_EQ(cluster.told("UnexpectedJob",
                         "Saw a job that the controller did not create or forgot: manual"),
            1);
  run(minutes(6));
  EXPECT_EQ(jobs().size(), 2U);
}

TEST(CronTimes, the_last_missed_start_is_found_however_many_there_were) {
  const TimeZone zone = TimeZone::fixed(hours(1));
  const Time since = *parse_time("2026-01-01T00:10:00Z");
  for (const std::string_view text :
       {"* * * * *", "*/7 * * * *", "30 6-16/4 * * 1-5", "5 4 * * sun", "0 0 1 * *", "* 3 * * *",
        "@every 13m", "@every 25h"}) {
    const CronSchedule schedule = *CronSchedule::parse(text);
    for (const Duration later : {Duration(minutes(1)), Duration(hours(2)), Duration(hours(50)),
                                 Duration(hours(24 * 33)), Duration(hours(24 * 90))}) {
      const Time now = since + later;
      std::optional<Time> expected;
      int count = 0;
      for (auto t = schedule.next(since, zone); t && *t <= now; t = schedule.next(*t, zone)) {
        expected = t;
        ++count;
      }
      const Missed missed = missed_starts(schedule, zone, since, now);
      EXPECT_EQ(missed.latest, expected) << text << " until " << rfc3339(now);
      EXPECT_EQ(missed.many, count > 100) << text << " until " << rfc3339(now);
    }
  }
}

TEST(CronTimes, are_written_as_the_clock_of_the_zone_shows_them) {
  const Time t = *parse_time("2026-11-16T08:00:00Z");
  EXPECT_EQ(rfc3339_local(t, {}), "2026-11-16T08:00:00Z");
  EXPECT_EQ(rfc3339_local(t, TimeZone::fixed(hours(1))), "2026-11-16T09:00:00+01:00");
  EXPECT_EQ(rfc3339_local(t, TimeZone::fixed(-minutes(570))), "2026-11-15T22:30:00-09:30");
}

// Jobs run for a while and end; in the end the schedule is suspended.
bool cron_job_step(client::Client& client, Time now, Random& random, int& steps) {
  ++steps;
  if (steps == 60) {
    testing::change(client, cron_job_resource(), "tick", {{"spec", {{"suspend", true}}}});
    return true;
  }
  for (const Object& job : testing::all(client, job_resource())) {
    if (api::controller_of(*job) == nullptr) continue;
    const bool done = api::condition_true(*job, "Complete") || api::condition_true(*job, "Failed");
    if (done || (steps < 60 && random.chance(70))) continue;
    testing::change(client, job_resource(), api::name(*job),
                    job_ended(random.chance(50) ? "Complete" : "Failed", now, now), "status");
    return true;
  }
  return false;
}

std::optional<std::string> wrong_cron_job(client::Client& client) {
  const json::value cron = *client.get(cron_job_resource(), testing::kNamespace, "tick");
  if (!json::get_array(cron, {"status", "active"}).empty()) return "jobs are active for ever";
  if (json::find(cron, {"status", "lastScheduleTime"}) == nullptr) return "nothing ever started";
  std::map<std::string_view, int> ends;
  bool stranger = false;
  for (const Object& job : testing::all(client, job_resource())) {
    stranger = stranger || api::name(*job) == "stranger";
    if (!api::controlled_by(*job, api::uid(cron))) continue;
    ++ends[api::condition_true(*job, "Complete") ? "Complete" : "Failed"];
  }
  if (!stranger) return "the job of somebody else is gone";
  if (ends["Complete"] > 2 || ends["Failed"] > 1) return "too many ended jobs are left";
  return std::nullopt;
}

TEST(CronJob, keeps_the_five_laws) {
  int steps = 0;
  std::string policy;
  control::testing::LawCase laws;
  laws.controller = cron_job_controller(zones);
  laws.arrange = [&](client::Client& client, Random& random) {
    steps = 0;
    const std::string_view policies[] = {"Allow", "Forbid", "Replace"};
    policy = policies[random.below(3)];
    testing::create(client, cron_job_resource(), cron_job("*/2 * * * *", policy));
    testing::create(client, job_resource(), {{"metadata", {{"name", "stranger"}}}});
  };
  laws.step = [&](client::Client& client, Time now, Random& random) {
    return cron_job_step(client, now, random, steps);
  };
  laws.never = [&](client::Client& client) -> std::optional<std::string> {
    int active = 0;
    for (const Object& job : testing::all(client, job_resource())) {
      const bool done =
          api::condition_true(*job, "Complete") || api::condition_true(*job, "Failed");
      if (!done && !api::deleting(*job) && api::controller_of(*job) != nullptr) ++active;
    }
    if (policy != "Allow" && active > 1) return "two jobs run at the same time";
    return std::nullopt;
  };
  laws.wrong = wrong_cron_job;
  laws.cuts_max = 10;
  for (const std::string& sentence : control::testing::check_laws(laws)) ADD_FAILURE() << sentence;
}

}  // namespace
}  // namespace skiff::workloads
