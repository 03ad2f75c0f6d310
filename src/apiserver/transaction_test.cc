#include "apiserver/transaction.h"

#include "apiserver/test_world.h"

namespace skiff::apiserver {
namespace {

store::Key key(std::string name, std::string ns = "default") {
  return {.resource = "things", .ns = std::move(ns), .name = std::move(name)};
}

json::value thing(int size) { return json::object{{"metadata", json::object()}, {"size", size}}; }

class Transactions : public ::testing::Test {
 protected:
  void put(const store::Key& at, int size) {
    ASSERT_TRUE(world.store->commit({{.key = at, .value = thing(size)}}, store::Sync::kLazy));
  }
  World world;
};

TEST_F(Transactions, A_list_shows_what_is_staged_over_what_is_stored) {
  put(key("a"), 1);
  put(key("b"), 1);
  put(key("x", "other"), 9);
  Transaction txn(*world.store);
  txn.put(key("b"), thing(2));
  txn.put(key("d"), thing(3));
  txn.remove(key("a"));
  std::vector<std::int64_t> sizes;
  for (const Object& object : txn.list("things", "default")) {
    sizes.push_back(*json::get_int(*object, {"size"}));
  }
  EXPECT_EQ(sizes, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(txn.list("things", "").size(), 3u);
  ASSERT_EQ(txn.removals("things").size(), 1u);
  EXPECT_EQ(json::get_int(*txn.removals("things")[0], {"size"}), 1);
}

TEST_F(Transactions, A_list_shows_nothing_staged_of_its_neighbours) {
  Transaction txn(*world.store);
  txn.put(key("a", "def"), thing(1));
  txn.put(key("b"), thing(2));
  txn.put(key("c", "default2"), thing(3));
  for (const char* other : {"a", "thing", "things.example.com", "zebras"}) {
    txn.put({.resource = other, .ns = "default", .name = "d"}, thing(4));
  }
  ASSERT_EQ(txn.list("things", "default").size(), 1u);
  EXPECT_EQ(json::get_int(*txn.list("things", "default")[0], {"size"}), 2);
  EXPECT_EQ(txn.list("things", "").size(), 3u);
}

TEST_F(Transactions, What_it_requires_must_be_at_commit_as_it_was_read) {
  put(key("a"), 1);
  Transaction txn(*world.store);
  txn.require(key("a"));
  txn.require(key("absent"));
  txn.put(key("b"), thing(2));
  put(key("a"), 5);
  const auto done = txn.commit(store::Sync::kLazy);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::kConflict);
  Transaction again(*world.store);
  again.require(key("absent"));
  again.put(key("b"), thing(2));
  put(key("absent"), 1);
  EXPECT_EQ(again.commit(store::Sync::kLazy).error().code, Code::kAlreadyExists);
}

TEST_F(Transactions, A_requirement_alone_is_checked_too_and_writes_nothing) {
  put(key("a"), 1);
  Transaction txn(*world.store);
  txn.require(key("a"));
  const store::Revision before = world.store->revision();
  EXPECT_EQ(*txn.commit(store::Sync::kLazy), before);
  Transaction late(*world.store);
  late.require(key("a"));
  put(key("a"), 2);
  EXPECT_FALSE(late.commit(store::Sync::kLazy));
}

TEST_F(Transactions, What_it_requires_it_may_also_write) {
  put(key("a"), 1);
  Transaction txn(*world.store);
  txn.require(key("a"));
  txn.put(key("a"), thing(2));
  EXPECT_TRUE(txn.commit(store::Sync::kLazy));
}

}  // namespace
}  // namespace skiff::apiserver
