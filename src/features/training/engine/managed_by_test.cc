#include "features/training/engine/managed_by.h"

#include <gtest/gtest.h>

namespace skiff::training {
namespace {

TEST(ManagedBy, NobodyNamedMeansUs) { EXPECT_TRUE(managed_here("")); }
TEST(ManagedBy, OurOwnNameMeansUs) { EXPECT_TRUE(managed_here("kubeflow.org/training-operator")); }
TEST(ManagedBy, MultiKueueIsSomebodyElse) { EXPECT_FALSE(managed_here(kMultiKueue)); }
TEST(ManagedBy, AnUnknownNameIsSomebodyElse) { EXPECT_FALSE(managed_here("example.com/other")); }

}  // namespace
}  // namespace skiff::training
