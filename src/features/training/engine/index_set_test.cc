#include "features/training/engine/index_set.h"

#include <gtest/gtest.h>

#include "base/limits.h"

namespace skiff::training {
namespace {

struct IndexSetCase {
  const char* sentence;
  const char* text;
  const char* expected;
  std::int64_t size;
};

class IndexSetText : public ::testing::TestWithParam<IndexSetCase> {};

TEST_P(IndexSetText, IsReadAndWritten) {
  const IndexSet set = IndexSet::parse(GetParam().text);
  EXPECT_EQ(set.text(), GetParam().expected) << GetParam().sentence;
  EXPECT_EQ(set.size(), GetParam().size) << GetParam().sentence;
}

INSTANTIATE_TEST_SUITE_P(
    All, IndexSetText,
    ::testing::Values(IndexSetCase{"nothing is the empty set", "", "", 0},
                      IndexSetCase{"one index stands alone", "7", "7", 1},
                      IndexSetCase{"neighbours become a range", "0,1,2,3", "0-3", 4},
                      IndexSetCase{"gaps separate ranges", "0-3,7,9-10", "0-3,7,9-10", 7},
                      IndexSetCase{"order does not matter", "7,0-3", "0-3,7", 5},
                      IndexSetCase{"overlaps count once", "0-3,2-5", "0-5", 6},
                      IndexSetCase{"what is no number is left out", "x,3,4-y,", "3", 1},
                      IndexSetCase{"a range that runs backwards is empty", "5-2", "", 0},
                      IndexSetCase{"negative numbers are left out", "-1,2", "2", 1},
                      IndexSetCase{"an index beyond any job is left out", "3,99999999", "3", 1},
                      IndexSetCase{"a range beyond any job costs nothing", "0-99999999999", "",
                                   0}));

TEST(IndexSet, InsertsAndErasesOnce) {
  IndexSet set;
  set.insert(4);
  set.insert(4);
  set.insert(-3);
  EXPECT_EQ(set.size(), 1);
  EXPECT_TRUE(set.contains(4));
  EXPECT_FALSE(set.contains(3));
  EXPECT_FALSE(set.contains(5));
  set.erase(4);
  set.erase(4);
  set.erase(1'000);
  EXPECT_EQ(set.size(), 0);
  EXPECT_EQ(set.text(), "");
}

TEST(IndexSet, ForgetsWhatLiesPastABound) {
  IndexSet set = IndexSet::parse("0-9");
  set.truncate(4);
  EXPECT_EQ(set.text(), "0-3");
  EXPECT_EQ(set.size(), 4);
}

TEST(IndexSet, StaysShortForAJobThatGoesWell) {
  IndexSet set;
  for (std::size_t i = 0; i < limits::kReplicasPerJob; ++i) {
    set.insert(static_cast<std::int64_t>(i));
  }
  EXPECT_EQ(set.text(), "0-9999");
}

}  // namespace
}  // namespace skiff::training
