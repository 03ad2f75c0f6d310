#include "env/posix/zones.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

namespace skiff::env::posix {
namespace {

class ZonesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "zonesXXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder = pattern;
    std::filesystem::create_directories(folder + "/Europe");
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  // One type of local time, so many hours east, for ever.
  void put(const std::string& name, char hours) {
    const int seconds = hours * 3600;
    std::string type = std::string(2, '\0');
    type += static_cast<char>(seconds >> 8);
    type += static_cast<char>(seconds & 0xff);
    type += std::string(2, '\0');
    std::string block = "TZif2" + std::string(15, '\0') + std::string(16, '\0');
    block += std::string(3, '\0') + '\1' + std::string(3, '\0') + '\1' + type + '\0';
    std::ofstream(folder + "/" + name, std::ios::binary)
        << block << block << "\n<X>-" << static_cast<int>(hours) << "\n";
  }
  std::string folder;
};

TEST_F(ZonesTest, are_read_from_the_first_folder_that_has_them) {
  put("Europe/Madrid", 1);
  Zones zones({"/nowhere", folder});
  const auto madrid = zones.zone("Europe/Madrid");
  ASSERT_TRUE(madrid) << madrid.error().message;
  EXPECT_EQ(madrid->offset_at(Time{}).count(), 3600);
}

TEST_F(ZonesTest, are_read_once) {
  put("Europe/Madrid", 1);
  Zones zones({folder});
  ASSERT_TRUE(zones.zone("Europe/Madrid"));
  std::filesystem::remove(folder + "/Europe/Madrid");
  EXPECT_TRUE(zones.zone("Europe/Madrid"));
}

TEST_F(ZonesTest, may_be_asked_for_by_several_threads) {
  put("Europe/Madrid", 1);
  put("Europe/Athens", 2);
  Zones zones({folder});
  const auto ask = [&] {
    for (int i = 0; i < 100; ++i) {
      EXPECT_TRUE(zones.zone("Europe/Madrid"));
      EXPECT_TRUE(zones.zone("Europe/Athens"));
    }
  };
  std::thread other(ask);
  ask();
  other.join();
}

TEST_F(ZonesTest, a_name_of_no_zone_is_no_path) {
  put("Europe/Nowhere", 1);
  Zones zones({folder});
  for (const std::string name : {"Europe/Nowhere", "../etc/passwd", "Europe", "Asia/Tokyo"}) {
    const auto zone = zones.zone(name);
    ASSERT_FALSE(zone) << name;
    EXPECT_EQ(zone.error().message, "unknown time zone " + name);
  }
}

TEST_F(ZonesTest, a_damaged_file_is_told) {
  std::ofstream(folder + "/Europe/Madrid") << "rubbish";
  EXPECT_FALSE(Zones({folder}).zone("Europe/Madrid"));
}

TEST_F(ZonesTest, utc_needs_no_file) {
  EXPECT_TRUE(Zones({"/nowhere"}).zone("UTC"));
  EXPECT_TRUE(Zones({"/nowhere"}).zone(""));
}

}  // namespace
}  // namespace skiff::env::posix
