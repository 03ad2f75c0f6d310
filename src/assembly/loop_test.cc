#include "assembly/loop.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>

namespace skiff::assembly {
namespace {

TEST(Loops, work_put_aside_is_done_by_the_worker_and_followed_up_at_home) {
  Loop worker;
  Loop home;
  const auto hour = [] { return Duration(std::chrono::hours(1)); };
  worker.start(hour);
  home.start(hour);
  const auto id_of = [](Loop& loop) {
    // Shared, because set_value() may still be at work when the waiting thread goes on.
    const auto id = std::make_shared<std::promise<std::thread::id>>();
    loop.post([id] { id->set_value(std::this_thread::get_id()); });
    return id->get_future().get();
  };
  std::thread::id worked;
  std::promise<std::thread::id> followed;
  auto held = std::make_shared<int>(1);  // not const: the work takes its share of it along
  long holders = 0;
  aside(worker, home)([&worked, held] { worked = std::this_thread::get_id(); },
                      [&] {
                        holders = held.use_count();
                        followed.set_value(std::this_thread::get_id());
                      });
  EXPECT_EQ(followed.get_future().get(), id_of(home));
  EXPECT_EQ(worked, id_of(worker));
  EXPECT_EQ(holders, 1) << "what the work held is freed by the worker";
}

TEST(Loops, know_the_cpu_time_of_their_thread) {
  std::promise<void> done;
  Loop loop;
  loop.start([] { return Duration(std::chrono::hours(1)); });
  const double before = loop.cpu_seconds();
  loop.post([&] {
    while (loop.cpu_seconds() - before < 0.02) {
    }
    done.set_value();
  });
  done.get_future().get();
  EXPECT_GE(loop.cpu_seconds() - before, 0.02);
}

}  // namespace
}  // namespace skiff::assembly
