#include "base/quantity.h"

#include <gtest/gtest.h>

namespace skiff {
namespace {

TEST(Quantity, ReadsAndWritesTheCanonicalForm) {
  struct Case {
    const char* text;
    const char* canonical;
    std::int64_t value;
    std::int64_t milli;
  };
  const Case cases[] = {
      {"0", "0", 0, 0},
      {"1", "1", 1, 1000},
      {"0.5", "500m", 1, 500},
      {"500m", "500m", 1, 500},
      {"1500m", "1500m", 2, 1500},
      {"2000m", "2", 2, 2000},
      {".5", "500m", 1, 500},
      {"1.", "1", 1, 1000},
      {"1Gi", "1Gi", 1073741824, 1073741824000},
      {"1024Mi", "1Gi", 1073741824, 1073741824000},
      {"1.5Gi", "1536Mi", 1610612736, 1610612736000},
      {"0.5Ki", "512", 512, 512000},
      {"1000", "1k", 1000, 1000000},
      {"1e3", "1e3", 1000, 1000000},
      {"12E", "9223372036854775807", INT64_MAX, INT64_MAX},
      {"1E", "1E", 1000000000000000000, INT64_MAX},
      {"1E3", "1e3", 1000, 1000000},
      {"1e-3", "1e-3", 1, 1},
      {"100n", "100n", 1, 1},
      {"0.0000000001", "1n", 1, 1},
      {"-1.5", "-1500m", -1, -1500},
      {"+4", "4", 4, 4000},
      {"99999999999999999999Gi", "9223372036854775807", INT64_MAX, INT64_MAX},
      {"1e-99", "1e-9", 1, 1},
      {"1e99999999999", "9223372036854775807", INT64_MAX, INT64_MAX},
  };
  for (const Case& c : cases) {
    const auto q = Quantity::parse(c.text);
    ASSERT_TRUE(q) << c.text << ": " << q.error().message;
    EXPECT_EQ(q->text(), c.canonical) << c.text;
    EXPECT_EQ(q->value(), c.value) << c.text;
    EXPECT_EQ(q->milli(), c.milli) << c.text;
  }
}

TEST(Quantity, IsRoundedUpToThousandthsWhereResourcesAreCounted) {
  for (const auto& [text, milli] :
       std::initializer_list<std::pair<const char*, const char*>>{{"1n", "1m"},
                                                                  {"0.0001", "1m"},
                                                                  {"1500m", "1500m"},
                                                                  {"1Gi", "1Gi"},
                                                                  {"1e-30", "1e-3"},
                                                                  {"-1n", "-1m"},
                                                                  {"0", "0"}}) {
    EXPECT_EQ(Quantity::parse(text)->in_milli().text(), milli) << text;
  }
}

TEST(Quantity, RefusesWhatIsNone) {
  for (const char* text : {"", "abc", "1.2.3", "1 Gi", "--1", ".", "Gi", "1GB", "1ki", "1e", "1ee3",
                           "0x10", "1e+", "1e+-3", "1i"}) {
    EXPECT_FALSE(Quantity::parse(text)) << text;
  }
  EXPECT_EQ(Quantity::parse("lots").error().message,
            "quantities must match the regular expression "
            "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'");
}

TEST(Quantity, ComparesAndAdds) {
  const Quantity a = *Quantity::parse("1Gi"), b = *Quantity::parse("1G");
  EXPECT_GT(a, b);
  EXPECT_EQ(*Quantity::parse("1000m"), *Quantity::parse("1"));
  EXPECT_EQ((a + *Quantity::parse("1Gi")).text(), "2Gi");
  EXPECT_EQ((*Quantity::parse("2") - *Quantity::parse("500m")).text(), "1500m");
  EXPECT_EQ((Quantity() + a).text(), "1Gi");
  const Quantity top = *Quantity::parse("9223372036854775807");
  EXPECT_EQ(top + top, top);
  EXPECT_EQ(Quantity::from_json(json::value(2))->text(), "2");
  EXPECT_EQ(Quantity::from_json(json::value(0.5))->text(), "500m");
  EXPECT_FALSE(Quantity::from_json(json::value(nullptr)));
}

TEST(Quantity, ManyDigitsOfASmallUnitAreReadWhole) {
  const auto large = Quantity::parse("1.544Ei");
  ASSERT_TRUE(large);
  EXPECT_EQ(large->text(), "1780110803112971730944m");
  EXPECT_EQ(Quantity::parse(large->text()), *large);
  EXPECT_EQ(Quantity::parse("9223372036854775807000000000n")->value(), INT64_MAX);
  EXPECT_EQ(Quantity::parse(std::string(60, '9') + "n")->value(), INT64_MAX) << "held at the most";
  EXPECT_EQ(Quantity::parse("1e-12")->text(), "1e-9") << "rounded up";
  EXPECT_EQ(Quantity::parse("12345e-12")->text(), "13e-9");
  EXPECT_EQ(Quantity::parse("-12000e-12")->text(), "-12e-9");
  EXPECT_EQ(Quantity::parse("0.5m")->text(), "500u");
}

}  // namespace
}  // namespace skiff
