#include "image/manifest.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace skiff::image {
namespace {

json::value parse(std::string_view text) {
  auto parsed = json::parse(text);
  EXPECT_TRUE(parsed) << text;
  return *parsed;
}

std::string hash(char c) { return "sha256:" + std::string(64, c); }

std::string entry(char c, std::string_view platform) {
  return fmt::format(R"({{"digest":"{}","size":7{}}})", hash(c), platform);
}

TEST(Manifest, AnIndexGivesTheOneForThePlatform) {
  const json::value index = parse(fmt::format(
      R"({{"manifests":[{},{},{},{}]}})",
      entry('a', R"(,"platform":{"os":"linux","architecture":"s390x"})"),
      entry('b', R"(,"platform":{"os":"linux","architecture":"amd64","variant":"v3"})"),
      entry('c', R"(,"platform":{"os":"linux","architecture":"amd64"})"),
      entry('d', R"(,"platform":{"os":"linux","architecture":"arm64","variant":"v8"})")));
  EXPECT_TRUE(is_index(index));
  EXPECT_EQ(choose_platform(index, {"linux", "amd64"})->digest, hash('c'));
  EXPECT_EQ(choose_platform(index, {"linux", "arm64"})->digest, hash('d'));
  const auto none = choose_platform(index, {"linux", "riscv64"});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::kNotFound);
  EXPECT_NE(none.error().message.find("linux/s390x"), std::string::npos) << none.error().message;
}

TEST(Manifest, AnIndexWithoutPlatformsAndItsAttestations) {
  const json::value alone = parse(fmt::format(R"({{"manifests":[{}]}})", entry('a', "")));
  EXPECT_EQ(choose_platform(alone, {"linux", "amd64"})->digest, hash('a'));
  const json::value attested =
      parse(fmt::format(R"({{"manifests":[{},{}]}})",
                        entry('a', R"(,"platform":{"os":"unknown","architecture":"unknown"})"),
                        entry('b', R"(,"platform":{"os":"linux","architecture":"amd64"})")));
  EXPECT_EQ(choose_platform(attested, {"linux", "amd64"})->digest, hash('b'));
  EXPECT_FALSE(choose_platform(attested, {"linux", "arm64"}));
}

TEST(Manifest, TheMediaTypeDecidesWhatADocumentIs) {
  EXPECT_TRUE(is_index(parse(fmt::format(R"({{"mediaType":"{}"}})", kDockerIndex))));
  EXPECT_TRUE(is_index(parse(fmt::format(R"({{"mediaType":"{}"}})", kOciIndex))));
  EXPECT_FALSE(
      is_index(parse(fmt::format(R"({{"mediaType":"{}","manifests":[]}})", kOciManifest))));
  EXPECT_FALSE(is_index(parse("{}")));
}

TEST(Manifest, HasAConfigurationAndLayers) {
  const auto manifest = parse_manifest(parse(fmt::format(
      R"({{"config":{},"layers":[{},{}]}})", entry('a', ""), entry('b', ""), entry('c', ""))));
  ASSERT_TRUE(manifest);
  EXPECT_EQ(manifest->config.digest, hash('a'));
  EXPECT_EQ(manifest->layers.size(), 2U);
  EXPECT_EQ(manifest->size(), 21);
}

TEST(Manifest, RefusesWhatItCannotTrust) {
  const std::string layers = [] {
    std::string out;
    for (int i = 0; i < 128; ++i) out += (i == 0 ? "" : ",") + entry('b', "");
    return out;
  }();
  for (const std::string& text : {
           std::string("{}"),
           std::string(R"({"schemaVersion":1,"fsLayers":[]})"),
           std::string(R"({"config":{"digest":"sha256:../x","size":1}})"),
           fmt::format(R"({{"config":{{"digest":"{}"}}}})", hash('a')),
           fmt::format(R"({{"config":{{"digest":"{}","size":-1}}}})", hash('a')),
           fmt::format(R"({{"config":{},"layers":[{{}}]}})", entry('a', "")),
           fmt::format(R"({{"config":{},"layers":[{}]}})", entry('a', ""), layers),
       }) {
    EXPECT_FALSE(parse_manifest(parse(text))) << text.substr(0, 100);
  }
}

TEST(Config, SaysHowTheImageIsRun) {
  const auto config = parse_config(fmt::format(
      R"({{"os":"linux","architecture":"amd64","rootfs":{{"diff_ids":["{}"]}},
          "config":{{"Env":["A=1","B=x=y","BROKEN","=z"],"Entrypoint":["/e"],"Cmd":["c","d"],
          "WorkingDir":"/w","User":"u:g","StopSignal":"SIGINT"}}}})",
      hash('a')));
  ASSERT_TRUE(config);
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(config->env, (Pairs{{"A", "1"}, {"B", "x=y"}}));
  EXPECT_EQ(config->entrypoint, std::vector<std::string>{"/e"});
  EXPECT_EQ(config->cmd, (std::vector<std::string>{"c", "d"}));
  EXPECT_EQ(config->working_dir, "/w");
  EXPECT_EQ(config->user, "u:g");
  EXPECT_EQ(config->stop_signal, "SIGINT");
  EXPECT_EQ(config->diff_ids, std::vector<std::string>{hash('a')});
}

TEST(Config, MayLeaveEverythingOutButNotLieAboutLayers) {
  const auto empty = parse_config("{}");
  ASSERT_TRUE(empty);
  EXPECT_TRUE(empty->diff_ids.empty());
  EXPECT_TRUE(parse_config(R"({"config":{"Env":null,"Cmd":null}})"));
  EXPECT_FALSE(parse_config(R"({"rootfs":{"diff_ids":["sha256:../../etc"]}})"));
  EXPECT_FALSE(parse_config("not JSON"));
}

}  // namespace
}  // namespace skiff::image
