#include "cli/image_text.h"

#include <gtest/gtest.h>

namespace skiff::cli {
namespace {

TEST(SizeText, CountsInThousands) {
  EXPECT_EQ(size_text(0), "0 B");
  EXPECT_EQ(size_text(999), "999 B");
  EXPECT_EQ(size_text(1000), "1.0 kB");
  EXPECT_EQ(size_text(999'949), "999.9 kB");
  EXPECT_EQ(size_text(999'950), "1.0 MB") << "never 1000.0 kB";
  EXPECT_EQ(size_text(34'000'000), "34.0 MB");
  EXPECT_EQ(size_text(5'300'000'000'000), "5300.0 GB");
}

TEST(ProgressLine, FillsFromLeftToRight) {
  EXPECT_EQ(progress_line("x", {}), "x") << "nothing is known yet";
  const std::string none = progress_line("x", {.done = 0, .total = 3000});
  EXPECT_NE(none.find("[>                             ]"), std::string::npos) << none;
  const std::string half = progress_line("x", {.done = 1500, .total = 3000});
  EXPECT_NE(half.find("[===============>              ] 1.5 kB of 3.0 kB"), std::string::npos)
      << half;
  const std::string all = progress_line("x", {.done = 3000, .total = 3000, .what = "unpacking"});
  EXPECT_NE(all.find("[==============================] 3.0 kB of 3.0 kB unpacking"),
            std::string::npos);
  EXPECT_EQ(progress_line("x", {.done = 9000, .total = 3000, .what = "unpacking"}), all);
}

TEST(ImageRows, ShowImagesAndMappings) {
  const auto mapping =
      json::parse(R"({"metadata":{"name":"m"},"spec":{"pattern":"gcr.io/p/*","venv":"/v"}})");
  ASSERT_TRUE(mapping);
  const std::vector<ImageRow> rows = {
      mapping_row(*mapping),
      {.image = "r.io/a:1", .is = "sha256:" + std::string(64, 'a'), .bytes = 1200}};
  using Row = std::vector<std::string>;
  const auto table = rows_table(rows);
  ASSERT_EQ(table.size(), 3U);
  EXPECT_EQ(table[1], (Row{"gcr.io/p/*", "venv /v", "-", "m"}));
  EXPECT_EQ(table[2], (Row{"r.io/a:1", "sha256:aaaaaaaaaaaa", "1.2 kB", "-"}));
  const json::value out = rows_json(rows);
  EXPECT_EQ(json::get_string(out.as_array()[0], {"mapping"}), "m");
  EXPECT_EQ(json::get_string(out.as_array()[1], {"digest"}).size(), 71U);
  EXPECT_EQ(json::get_int(out.as_array()[1], {"size"}), 1200);
}

TEST(ImageRows, AMappingToTheMachineIsHost) {
  const auto mapping =
      json::parse(R"({"metadata":{"name":"m"},"spec":{"pattern":"*","host":true}})");
  EXPECT_EQ(mapping_row(*mapping).is, "host");
}

}  // namespace
}  // namespace skiff::cli
