#include "image/store.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "image/archive.h"
#include "image/images.h"
#include "image/test_image.h"

namespace skiff::image {
namespace {

namespace fs = std::filesystem;
using testing::file;
using testing::folder;
using testing::make_image;
using testing::tar;
using testing::TestImage;

class StoreTest : public ::testing::Test {
 protected:
  std::vector<StoredImage> load(const std::string& archive, const std::string& name = {}) {
    const auto source = string_source(archive);
    auto added = load_archive(store_, *source, name);
    EXPECT_TRUE(added) << added.error().message;
    return added ? *added : std::vector<StoredImage>{};
  }
  std::string load_error(const std::string& archive, const std::string& name = {}) {
    const auto source = string_source(archive);
    const auto added = load_archive(store_, *source, name);
    return added ? "" : added.error().message;
  }
  std::string save(const std::vector<StoredImage>& images) {
    std::string out;
    const auto saved = save_archive(store_, images, [&out](std::string_view bytes) -> Result<void> {
      out += bytes;
      return {};
    });
    EXPECT_TRUE(saved) << saved.error().message;
    return out;
  }
  std::size_t count(const std::string& place) const {
    std::size_t n = 0;
    for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder_.at("images/" + place)))
      ++n;
    return n;
  }
  Result<StoredImage> find(std::string_view name) const {
    return store_.find(*parse_reference(name));
  }

  testing::TemporaryFolder folder_;
  Store store_ = *Store::open(folder_.at("images"));
};

TEST_F(StoreTest, ABlobHasTheDigestItWasPromisedWith) {
  const auto writer = store_.new_blob();
  ASSERT_TRUE(writer->add("hel"));
  ASSERT_TRUE(writer->add("lo"));
  ASSERT_TRUE(writer->finish(testing::digest_of("hello"), 5));
  EXPECT_EQ(store_.read_blob(testing::digest_of("hello")).value_or(""), "hello");
  for (const auto& [digest, size] :
       {std::pair{testing::digest_of("other"), 5}, std::pair{testing::digest_of("bad"), 7}}) {
    const auto wrong = store_.new_blob();
    ASSERT_TRUE(wrong->add("bad"));
    EXPECT_FALSE(wrong->finish(digest, size));
  }
  EXPECT_FALSE(store_.has_blob(testing::digest_of("bad")));
  EXPECT_EQ(count("tmp"), 0U) << "what failed leaves nothing";
}

TEST_F(StoreTest, ABlobThatChangedOnDiskIsNotBelieved) {
  ASSERT_TRUE(store_.add_blob("text"));
  std::ofstream(store_.blob_path(testing::digest_of("text"))) << "tampered";
  EXPECT_FALSE(store_.read_blob(testing::digest_of("text")));
}

TEST_F(StoreTest, AnArchiveOfDockerIsLoadedUnderItsTags) {
  const TestImage image =
      make_image({tar({file("a", "1")}), tar({file("b", "2")})}, {{"Cmd", json::array{"/a"}}});
  const auto added = load(testing::docker_archive(image, {"box:1", "example.com/box:2"}));
  ASSERT_EQ(added.size(), 2U);
  EXPECT_EQ(added[0].name, "docker.io/library/box:1");
  const auto found = find("example.com/box:2");
  ASSERT_TRUE(found);
  const auto whole = store_.read(*found);
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->config.cmd, std::vector<std::string>{"/a"});
  EXPECT_EQ(whole->manifest.layers.size(), 2U);
  EXPECT_FALSE(find("box:3"));
  EXPECT_TRUE(store_.find(*parse_reference("example.com/box@" + found->manifest)));
  EXPECT_FALSE(store_.find(*parse_reference("example.com/other@" + found->manifest)));
}

TEST_F(StoreTest, LayersAreUnpackedOnceAndTopmostFirst) {
  if (::geteuid() != 0) GTEST_SKIP() << "layers are unpacked by root only";
  const std::string base = tar({file("a", "1")});
  const auto one =
      load(testing::docker_archive(make_image({base, tar({file("b", "2")})}), {"one:1"}));
  const auto two =
      load(testing::docker_archive(make_image({base, tar({file("c", "3")}), base}), {"two:1"}));
  EXPECT_EQ(count("layers"), 3U);
  const auto layers = store_.layers(*store_.read(one[0]));
  ASSERT_TRUE(layers);
  ASSERT_EQ(layers->size(), 2U);
  EXPECT_TRUE(fs::exists((*layers)[0] + "/b"));
  EXPECT_TRUE(fs::exists((*layers)[1] + "/a"));
  EXPECT_EQ(store_.layers(*store_.read(two[0]))->size(), 2U) << "a layer that comes twice is one";
}

TEST_F(StoreTest, ALayerThatIsNotWhatTheConfigurationSaysIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "layers are unpacked by root only";
  TestImage image = make_image({tar({file("a", "1")})});
  image.layers = {tar({file("evil", "1")})};
  EXPECT_NE(load_error(testing::docker_archive(image, {"x:1"})).find("unpacks to"),
            std::string::npos);
  EXPECT_FALSE(find("x:1"));
  EXPECT_EQ(count("layers"), 0U);
  EXPECT_EQ(count("tmp"), 0U);
}

TEST_F(StoreTest, WhatIsSavedIsLoadedBackWithTheSameDigest) {
  const auto added = load(
      testing::docker_archive(make_image({tar({file("a", std::string(5000, 'x'))})}), {"box:1"}));
  const std::string archive = save(added);
  ASSERT_TRUE(store_.remove(*parse_reference("box:1")));
  ASSERT_TRUE(store_.collect());
  EXPECT_EQ(count("blobs"), 0U);
  const auto again = load(archive);
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].name, added[0].name);
  EXPECT_EQ(again[0].manifest, added[0].manifest);
}

TEST_F(StoreTest, AnArchiveWithoutANameNeedsOne) {
  const std::string archive = testing::docker_archive(make_image({tar({file("a", "1")})}), {});
  EXPECT_NE(load_error(archive).find("--name"), std::string::npos);
  EXPECT_EQ(load(archive, "mine:1").at(0).name, "docker.io/library/mine:1");
}

TEST_F(StoreTest, ALayoutMayHoldAnIndexWithinItsIndex) {
  const TestImage image = make_image({tar({file("a", "1")})});
  const auto blob = [](std::string_view text) {
    return "blobs/sha256/" + testing::digest_of(text).substr(7);
  };
  const auto descriptor = [](std::string_view type, std::string_view text) {
    return to_json(Descriptor{.media_type = std::string(type),
                              .digest = testing::digest_of(text),
                              .size = static_cast<std::int64_t>(text.size())});
  };
  json::object here = descriptor(kOciManifest, image.manifest);
  here["platform"] = {{"os", "linux"}, {"architecture", this_platform().architecture}};
  const std::string inner =
      json::serialize(json::object{{"mediaType", kOciIndex}, {"manifests", json::array{here}}});
  json::object top = descriptor(kOciIndex, inner);
  top["annotations"] = {{"org.opencontainers.image.ref.name", "example.com/deep:1"}};
  const std::string outer = json::serialize(json::object{{"manifests", json::array{top}}});
  const auto added =
      load(tar({file("oci-layout", "{}"), file("index.json", outer), file(blob(inner), inner),
                file(blob(image.manifest), image.manifest), file(blob(image.config), image.config),
                file(blob(image.layers[0]), image.layers[0])}));
  ASSERT_EQ(added.size(), 1U);
  EXPECT_EQ(added[0].name, "example.com/deep:1");
  EXPECT_EQ(added[0].target, testing::digest_of(inner));
  EXPECT_EQ(added[0].manifest, testing::digest_of(image.manifest));
}

TEST_F(StoreTest, BadArchivesAreToldAndLeaveNothing) {
  const TestImage image = make_image({tar({file("a", "1")})});
  struct Case {
    std::string archive;
    const char* says;
  };
  for (const Case& c : {
           Case{tar({file("readme", "hello")}), "neither index.json nor manifest.json"},
           Case{tar({file("manifest.json", R"([{"Config":"no.json","RepoTags":["a:1"]}])")}),
                "no.json is missing"},
           Case{tar({file("manifest.json", "[]")}), "no image"},
           Case{tar({file("index.json", R"({"manifests":[{"digest":"sha256:x","size":1}]})")}),
                "not a SHA-256"},
           Case{"not a tar at all", "broken"},
           Case{testing::docker_archive(image, {"Not A Name"}), "couldn't parse"},
       }) {
    EXPECT_NE(load_error(c.archive).find(c.says), std::string::npos)
        << c.says << ": " << load_error(c.archive);
  }
  ASSERT_TRUE(store_.collect());
  for (const char* place : {"blobs", "layers", "refs", "tmp"}) EXPECT_EQ(count(place), 0U) << place;
}

TEST_F(StoreTest, WhatAPodUsesStaysUntilItIsForgotten) {
  const auto images = Images::open(folder_.at("images"));
  ASSERT_TRUE(images);
  const auto added = load(testing::docker_archive(make_image({tar({file("a", "1")})}), {"box:1"}));
  if (::geteuid() == 0) {
    ASSERT_TRUE((*images)->hold("pod-1", added[0]));
  } else {
    ASSERT_TRUE(store_.use("pod-1", added[0]));
  }
  ASSERT_TRUE(store_.remove(*parse_reference("box:1")));
  EXPECT_EQ(store_.collect()->blobs, 1) << "the archive's own manifest.json";
  EXPECT_EQ(count("blobs"), 3U);
  EXPECT_EQ(store_.owners(), std::vector<std::string>{"pod-1"});
  store_.forget("../refs");
  store_.forget("pod-1");
  EXPECT_EQ(store_.collect()->blobs, 3);
  EXPECT_EQ(count("blobs"), 0U);
  EXPECT_EQ(count("layers"), 0U);
}

TEST_F(StoreTest, NothingIsRemovedWhileSomebodyAdds) {
  ASSERT_TRUE(store_.add_blob("on its way"));
  {
    const auto lease = store_.adding();
    ASSERT_TRUE(lease);
    EXPECT_TRUE(store_.collect()->busy);
    EXPECT_EQ(count("blobs"), 1U);
  }
  EXPECT_EQ(store_.collect()->blobs, 1);
}

TEST_F(StoreTest, WhatWasBeingWrittenWhenTheMachineStoppedIsGarbage) {
  fs::create_directories(folder_.at("images/tmp/123.0.dead/sub"));
  std::ofstream(folder_.at("images/tmp/half")) << "half";
  ASSERT_TRUE(store_.collect());
  EXPECT_EQ(count("tmp"), 0U);
}

TEST_F(StoreTest, ADamagedImageSaysSo) {
  const auto added = load(testing::docker_archive(make_image({tar({file("a", "1")})}), {"box:1"}));
  fs::remove(store_.blob_path(added[0].manifest));
  const auto read = store_.read(added[0]);
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().message.find("is damaged"), std::string::npos);
  EXPECT_EQ(store_.list()->size(), 1U);
}

TEST_F(StoreTest, ManyMayLoadTheSameImageAtOnce) {
  const std::string archive =
      testing::docker_archive(make_image({tar({file("a", std::string(100000, 'x'))})}), {"box:1"});
  std::vector<std::thread> threads;
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&] {
      const auto source = string_source(archive);
      EXPECT_TRUE(load_archive(store_, *source));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(find("box:1"));
  EXPECT_EQ(count("tmp"), 0U);
  EXPECT_EQ(count("layers"), ::geteuid() == 0 ? 1U : 0U);
}

}  // namespace
}  // namespace skiff::image
