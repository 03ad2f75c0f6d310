#include "node/volumes.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "node/container_setup.h"
#include "node/testing/parse.h"

namespace skiff::node {
namespace {

namespace fs = std::filesystem;

Result<json::value> look_up_map(SourceKind kind, std::string_view name) {
  if (kind == SourceKind::kConfigMap && name == "map") {
    return parse(R"({"data":{"a":"1","b":"2"}})");
  }
  return fail(Code::kNotFound, "nothing");
}

Result<std::vector<Volume>> plan(std::string_view volume) {
  const json::value pod =
      parse(R"({"metadata":{"name":"p","labels":{"k":"v"}},"spec":{"volumes":[)" +
            std::string(volume) + "]}}");
  const json::value container = json::object();
  return plan_volumes({.pod = pod, .container = container, .lookup = look_up_map});
}

class VolumesTest : public ::testing::Test {
 protected:
  VolumesTest() {
    char pattern[] = "/tmp/skiff-volumes-XXXXXX";
    folder_ = ::mkdtemp(pattern);
  }
  ~VolumesTest() override {
    std::error_code error;
    fs::remove_all(folder_, error);
  }
  static std::string read(const std::string& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
  std::string folder_;
};

constexpr std::string_view kApiAccess =
    R"({"name":"v","projected":{"sources":[
      {"serviceAccountToken":{"path":"token","expirationSeconds":3607,"audience":"vault"}},
      {"configMap":{"name":"kube-root-ca.crt","items":[{"key":"ca.crt","path":"ca.crt"}]}},
      {"downwardAPI":{"items":[{"path":"namespace",
        "fieldRef":{"fieldPath":"metadata.namespace"}}]}}]}})";

TEST(VolumePlan, ATokenIsAskedForInTheNameOfThePodAndItsAccount) {
  const json::value pod = parse(
      R"({"metadata":{"name":"p","namespace":"ns","uid":"u1"},
          "spec":{"serviceAccountName":"robot","volumes":[)" +
      std::string(kApiAccess) + "]}}");
  const json::value container = json::object();
  const Lookup certificate = [](SourceKind, std::string_view) -> Result<json::value> {
    return parse(R"({"data":{"ca.crt":"PEM"}})");
  };
  TokenWish asked;
  const auto volumes = plan_volumes({.pod = pod,
                                     .container = container,
                                     .lookup = certificate,
                                     .tokens = [&](const TokenWish& wish) -> Result<std::string> {
                                       asked = wish;
                                       return "secret";
                                     }});
  ASSERT_TRUE(volumes) << volumes.error().message;
  const std::vector<VolumeFile>& files = (*volumes)[0].files;
  ASSERT_EQ(files.size(), 3U);
  EXPECT_EQ(files[0].path + "=" + files[0].data, "token=secret");
  EXPECT_EQ(files[1].path + "=" + files[1].data, "ca.crt=PEM");
  EXPECT_EQ(files[2].path + "=" + files[2].data, "namespace=ns");
  EXPECT_EQ(
      asked.ns + "/" + asked.account + "/" + asked.pod + "/" + asked.pod_uid + "/" + asked.audience,
      "ns/robot/p/u1/vault");
  EXPECT_EQ(asked.seconds, 3607);
}

TEST(VolumePlan, WithoutTokensAPodRunsAndStillLearnsItsNamespace) {
  const auto volumes = plan(kApiAccess);
  ASSERT_TRUE(volumes) << volumes.error().message;
  ASSERT_EQ((*volumes)[0].files.size(), 1U);
  EXPECT_EQ((*volumes)[0].files[0].path, "namespace");
}

TEST(VolumePlan, WhereThereAreTokensTheCertificateIsWaitedFor) {
  const json::value pod = parse(R"({"spec":{"volumes":[)" + std::string(kApiAccess) + "]}}");
  const json::value container = json::object();
  const auto volumes =
      plan_volumes({.pod = pod,
                    .container = container,
                    .lookup = look_up_map,
                    .tokens = [](const TokenWish&) -> Result<std::string> { return "secret"; }});
  ASSERT_FALSE(volumes);
  EXPECT_EQ(volumes.error().code, Code::kNotFound);
}

TEST(VolumePlan, ChoosesRenamesAndSetsModes) {
  const auto all = plan(R"({"name":"v","configMap":{"name":"map","defaultMode":256}})");
  ASSERT_TRUE(all);
  ASSERT_EQ((*all)[0].files.size(), 2U);
  EXPECT_EQ((*all)[0].files[0].mode, 0400);
  const auto some = plan(
      R"({"name":"v","configMap":{"name":"map","items":[{"key":"b","path":"x/y","mode":384}]}})");
  ASSERT_TRUE(some);
  ASSERT_EQ((*some)[0].files.size(), 1U);
  EXPECT_EQ((*some)[0].files[0].path, "x/y");
  EXPECT_EQ((*some)[0].files[0].data, "2");
  EXPECT_EQ((*some)[0].files[0].mode, 0600);
}

TEST(VolumePlan, ProjectsSeveralSourcesIntoOne) {
  const auto planned = plan(R"({"name":"v","projected":{"sources":[{"configMap":{"name":"map"}},
      {"downwardAPI":{"items":[{"path":"labels",
        "fieldRef":{"fieldPath":"metadata.labels"}}]}}]}})");
  ASSERT_TRUE(planned) << planned.error().message;
  ASSERT_EQ((*planned)[0].files.size(), 3U);
  EXPECT_EQ((*planned)[0].files[2].data, "k=\"v\"");
}

struct VolumesCase {
  std::string_view sentence;
  std::string_view volume;
  Code code;
  std::string_view message;
};

// A config map has at most 1 MiB, but a volume may name a key of it ten thousand times.
TEST(VolumePlan, SmallBodiesKillTheServerByFilesOfOneLargeKey) {
  const Lookup large = [](SourceKind, std::string_view) -> Result<json::value> {
    return json::object{{"data", {{"k", json::string(std::string(1'000'000, 'x'))}}}};
  };
  const auto several = [](int count) {
    std::string items;
    for (int i = 0; i < count; ++i) {
      items += fmt::format(R"({}{{"key":"k","path":"{}"}})", i == 0 ? "" : ",", i);
    }
    return R"({"name":"v","configMap":{"name":"map","items":[)" + items + "]}}";
  };
  const auto plan_all = [&](const std::string& volumes) {
    const json::value pod = parse(R"({"spec":{"volumes":[)" + volumes + "]}}");
    const json::value container = json::object();
    return plan_volumes({.pod = pod, .container = container, .lookup = large});
  };
  EXPECT_TRUE(plan_all(several(20)));
  for (const std::string& volumes : {several(40), several(20) + "," + several(20)}) {
    const auto planned = plan_all(volumes);
    ASSERT_FALSE(planned);
    EXPECT_EQ(planned.error().message,
              "the files of the pod's volumes have more than 33554432 bytes; use fewer items of "
              "config maps and secrets, or a persistentVolumeClaim");
  }
}

TEST(VolumePlan, SaysWhatIsMissingOrUnknown) {
  const VolumesCase kCases[] = {
      {"a missing config map may come", R"({"name":"v","configMap":{"name":"no"}})",
       Code::kNotFound, "configmap \"no\" not found"},
      {"a missing key may come",
       R"({"name":"v","configMap":{"name":"map","items":[{"key":"z","path":"z"}]}})",
       Code::kNotFound, "has no key \"z\""},
      {"a path that leaves the volume is refused",
       R"({"name":"v","configMap":{"name":"map","items":[{"key":"a","path":"../x"}]}})",
       Code::kInvalid, "would leave the volume"},
      {"an unknown type is named", R"({"name":"v","nfs":{"server":"s"}})", Code::kInvalid,
       "of type nfs"},
  };
  for (const VolumesCase& c : kCases) {
    SCOPED_TRACE(c.sentence);
    const auto planned = plan(c.volume);
    ASSERT_FALSE(planned);
    EXPECT_EQ(planned.error().code, c.code);
    EXPECT_NE(planned.error().message.find(c.message), std::string::npos)
        << planned.error().message;
  }
  EXPECT_TRUE(plan(R"({"name":"v","configMap":{"name":"no","optional":true}})"));
}

TEST_F(VolumesTest, FilesAreSwappedAsAWhole) {
  Volume volume{.name = "v", .kind = VolumeKind::kFiles};
  volume.files = {{"a", "1", 0640}, {"d/b", "2", 0644}};
  const auto made = make_volume(folder_, volume, {});
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(read(*made + "/a"), "1");
  EXPECT_EQ(read(*made + "/d/b"), "2");
  EXPECT_TRUE(fs::is_symlink(*made + "/..data"));
  struct stat info = {};
  ASSERT_EQ(::stat((*made + "/a").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640U);

  const fs::path before = fs::read_symlink(*made + "/..data");
  ASSERT_TRUE(make_volume(folder_, volume, {}));
  EXPECT_EQ(fs::read_symlink(*made + "/..data"), before) << "nothing changed, nothing swapped";

  volume.files = {{"a", "new", 0640}, {"c", "3", 0644}};
  ASSERT_TRUE(make_volume(folder_, volume, {}));
  EXPECT_NE(fs::read_symlink(*made + "/..data"), before);
  EXPECT_EQ(read(*made + "/a"), "new");
  EXPECT_EQ(read(*made + "/c"), "3");
  EXPECT_FALSE(fs::exists(*made + "/d")) << "what is gone is gone";
  EXPECT_FALSE(fs::exists(fs::path(*made) / before));
}

TEST(VolumePlan, WhatSkiffWritesNoPodWrites) {
  for (const char* source : {R"("configMap":{"name":"map"})", R"("downwardAPI":{"items":[]})",
                             R"("projected":{"sources":[]})"}) {
    const auto planned = plan(R"({"name":"v",)" + std::string(source) + "}");
    ASSERT_TRUE(planned) << source;
    EXPECT_TRUE(planned->at(0).read_only) << source;
  }
  EXPECT_FALSE(plan(R"({"name":"v","emptyDir":{}})")->at(0).read_only);
}

TEST_F(VolumesTest, NothingOutsideOfAVolumeIsTouchedWhateverIsFoundInIt) {
  Volume volume{.name = "v", .kind = VolumeKind::kFiles, .files = {{"a", "1", 0644}}};
  const auto made = make_volume(folder_, volume, {});
  ASSERT_TRUE(made);
  fs::create_directories(folder_ + "/precious");
  std::ofstream(folder_ + "/precious/data") << "x";
  const fs::path up = fs::relative(folder_ + "/precious", *made);
  fs::remove(*made + "/..data");
  fs::create_directory_symlink(up, *made + "/..data");
  volume.files[0].data = "2";
  ASSERT_TRUE(make_volume(folder_, volume, {}));
  EXPECT_EQ(read(*made + "/a"), "2");
  EXPECT_EQ(read(folder_ + "/precious/data"), "x");
}

TEST_F(VolumesTest, WhatWasCutOffIsMadeWhole) {
  Volume volume{.name = "v", .kind = VolumeKind::kFiles, .files = {{"a", "1", 0644}}};
  const auto made = make_volume(folder_, volume, {});
  ASSERT_TRUE(made);
  fs::remove(*made + "/a");  // as if Skiff had been killed between the swap and the links
  fs::create_directories(*made + "/..99/half");
  ASSERT_TRUE(make_volume(folder_, volume, {}));
  EXPECT_EQ(read(*made + "/a"), "1");
  EXPECT_FALSE(fs::exists(*made + "/..99"));
}

TEST_F(VolumesTest, AnEmptyDirIsWritableByAnyUser) {
  const auto made = make_volume(folder_, {.name = "v"}, {});
  ASSERT_TRUE(made);
  struct stat info = {};
  ASSERT_EQ(::stat(made->c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0777U);
}

TEST_F(VolumesTest, TheGroupOfThePodsVolumesMayReadFilesAndOwnsWhatIsMade) {
  const json::value pod = parse(
      R"({"metadata":{"name":"p"},"spec":{"securityContext":{"fsGroup":4321},"volumes":[
          {"name":"m","configMap":{"name":"map","defaultMode":256}},
          {"name":"e","emptyDir":{}}]}})");
  const json::value container = json::object();
  const auto volumes = plan_volumes({.pod = pod, .container = container, .lookup = look_up_map});
  ASSERT_TRUE(volumes);
  EXPECT_EQ(volumes->at(0).files.at(0).mode, 0440);
  std::vector<std::string> places;
  for (const Volume& volume : *volumes) {
    const auto place = make_volume(folder_, volume, {});
    ASSERT_TRUE(place) << place.error().message;
    places.push_back(*place);
  }
  struct stat file = {};
  struct stat folder = {};
  ASSERT_EQ(::stat((places[0] + "/a").c_str(), &file), 0);
  ASSERT_EQ(::stat(places[1].c_str(), &folder), 0);
  EXPECT_EQ(file.st_mode & 07777, 0440U);
  EXPECT_EQ(folder.st_mode & 07777, 02777U);
  if (::geteuid() != 0) return;  // only root can give files away
  EXPECT_EQ(file.st_gid, 4321U);
  EXPECT_EQ(folder.st_gid, 4321U);
}

TEST_F(VolumesTest, HostPathsAreCheckedAndSkiffsDataIsHidden) {
  const auto host = [&](const std::string& path, const std::string& type) {
    return make_volume(
        folder_, {.name = "h", .kind = VolumeKind::kHostPath, .host_path = path, .host_type = type},
        {folder_ + "/data"});
  };
  EXPECT_TRUE(host(folder_ + "/new", "DirectoryOrCreate"));
  EXPECT_TRUE(host(folder_ + "/file", "FileOrCreate"));
  EXPECT_FALSE(host(folder_ + "/file", "Directory"));
  EXPECT_FALSE(host(folder_ + "/none", ""));
  EXPECT_FALSE(host("relative", ""));
  fs::create_directories(folder_ + "/data/pki");
  fs::create_symlink(folder_ + "/data", folder_ + "/link");
  for (const char* path : {"/data", "/data/pki", "/link", "/link/pki"}) {
    EXPECT_FALSE(host(folder_ + path, "")) << path;
  }
  EXPECT_TRUE(host(folder_, "")) << "what holds the data may be mounted, and the data is covered";
  EXPECT_TRUE(host("/", ""));
  EXPECT_FALSE(host(folder_ + "/data/made", "DirectoryOrCreate"));
  EXPECT_FALSE(fs::exists(folder_ + "/data/made")) << "what is refused is not made";
  fs::create_symlink(folder_ + "/data/file", folder_ + "/dangling");
  EXPECT_FALSE(host(folder_ + "/dangling", "FileOrCreate"));
  EXPECT_FALSE(fs::exists(folder_ + "/data/file"));
}

TEST_F(VolumesTest, AnImageMappingShowsNothingThatAVolumeMayNot) {
  fs::create_directories(folder_ + "/data/pki");
  fs::create_directories(folder_ + "/image");
  fs::create_symlink(folder_ + "/data", folder_ + "/link");
  const auto mount = [&](const std::string& rootfs, const std::string& source) {
    node::Setup setup;
    setup.container = json::object{};
    setup.spec.rootfs = rootfs;
    if (!source.empty()) setup.spec.mounts = {{.source = source, .target = "/mnt"}};
    return mount_volumes(std::move(setup), folder_ + "/pod", {folder_ + "/data"});
  };
  EXPECT_TRUE(mount("", folder_ + "/image"));
  EXPECT_TRUE(mount(folder_ + "/image", ""));
  for (const std::string& bad : {folder_ + "/data", folder_ + "/link/pki"}) {
    EXPECT_FALSE(mount("", bad)) << bad;
    EXPECT_FALSE(mount(bad, "")) << bad;
  }
}

TEST_F(VolumesTest, ASubPathCannotLeaveItsVolume) {
  const std::string volume = folder_ + "/v";
  fs::create_directories(volume + "/in");
  fs::create_directory_symlink("/etc", volume + "/out");
  fs::create_directory_symlink("in", volume + "/alias");
  const auto mount = [&](const std::string& sub) {
    return container_mounts(
        parse(R"({"volumeMounts":[{"name":"v","mountPath":"/m","subPath":")" + sub + R"("}]})"),
        {{"v", {.path = volume}}}, {});
  };
  EXPECT_EQ(mount("in")->at(0).source, volume + "/in");
  EXPECT_EQ(mount("alias")->at(0).source, volume + "/in");
  EXPECT_EQ(mount("fresh/deep")->at(0).source, volume + "/fresh/deep");
  EXPECT_TRUE(fs::is_directory(volume + "/fresh/deep"));
  fs::permissions(volume, fs::perms(02777));
  ASSERT_TRUE(mount("open/deep"));
  EXPECT_EQ(fs::status(volume + "/open/deep").permissions(), fs::perms(02777))
      << "who may write into the volume may write there";
  for (const char* bad : {"..", "in/../../x", "/etc", "out", "out/x"})
    EXPECT_FALSE(mount(bad)) << bad;
}

TEST_F(VolumesTest, ASubPathDoesNotLeadIntoSkiffsData) {
  fs::create_directories(folder_ + "/data/pki");
  fs::create_symlink("data", folder_ + "/link");
  const auto mount = [&](const std::string& sub) {
    return container_mounts(
        parse(R"({"volumeMounts":[{"name":"v","mountPath":"/m","subPath":")" + sub + R"("}]})"),
        {{"v", {.path = folder_, .hidden = {folder_ + "/data"}}}}, {});
  };
  EXPECT_TRUE(mount("other"));
  for (const char* bad : {"data", "data/pki", "link/pki", "data/made"}) {
    EXPECT_FALSE(mount(bad)) << bad;
  }
  EXPECT_FALSE(fs::exists(folder_ + "/data/made")) << "what is refused is not made";
}

TEST_F(VolumesTest, ASubPathOfAVolumeInMemoryIsLookedUpInsideOfIt) {
  const auto mount = [&](const std::string& sub) {
    return container_mounts(
        parse(R"({"volumeMounts":[{"name":"v","mountPath":"/m","subPath":")" + sub + R"("}]})"),
        {{"v", {.path = "/pod/volumes/v", .memory_bytes = 7}}}, {});
  };
  const auto mounts = mount("a/b");
  ASSERT_TRUE(mounts) << mounts.error().message;
  EXPECT_EQ(mounts->at(0).source, "/pod/volumes/v");
  EXPECT_EQ(mounts->at(0).inside, "a/b");
  EXPECT_EQ(mounts->at(0).memory_bytes, 7);
  EXPECT_FALSE(mount("../x"));
  EXPECT_FALSE(mount("/etc"));
}

TEST(VolumePlan, AVolumeInMemoryIsAsLargeAsItMayBe) {
  const auto size = [](std::string_view empty, std::string_view limits) {
    const json::value pod =
        parse(R"({"spec":{"volumes":[{"name":"v","emptyDir":)" + std::string(empty) +
              R"(}],"containers":[)" + std::string(limits) + "]}}");
    const json::value container = json::object();
    const auto volumes = plan_volumes(
        {.pod = pod, .container = container, .lookup = look_up_map, .node_memory_bytes = 1000});
    EXPECT_TRUE(volumes);
    EXPECT_EQ(volumes->at(0).kind, VolumeKind::kMemory);
    return volumes->at(0).memory_bytes;
  };
  constexpr std::string_view kPlain = R"({"medium":"Memory"})";
  EXPECT_EQ(size(kPlain, "{}"), 1000);
  EXPECT_EQ(size(R"({"medium":"Memory","sizeLimit":"300"})", "{}"), 300);
  EXPECT_EQ(size(R"({"medium":"Memory","sizeLimit":"3Gi"})", "{}"), 1000);
  const std::string limit = R"({"resources":{"limits":{"memory":"200"}}})";
  EXPECT_EQ(size(kPlain, limit + "," + limit), 400);
  // A container without a limit may use the whole machine.
  EXPECT_EQ(size(kPlain, limit + ",{}"), 1000);
}

TEST(VolumePlan, KnowsWhatAPodIsMadeOf) {
  const json::value pod = parse(R"({"spec":{"volumes":[
      {"name":"a","configMap":{"name":"m"}}, {"name":"b","secret":{"secretName":"s"}},
      {"name":"c","projected":{"sources":[{"configMap":{"name":"pm"}},
                                          {"secret":{"name":"ps"}}]}}]}})");
  for (const char* name : {"m", "pm"}) {
    EXPECT_TRUE(made_of(pod, SourceKind::kConfigMap, name)) << name;
    EXPECT_FALSE(made_of(pod, SourceKind::kSecret, name)) << name;
  }
  for (const char* name : {"s", "ps"}) {
    EXPECT_TRUE(made_of(pod, SourceKind::kSecret, name)) << name;
    EXPECT_FALSE(made_of(pod, SourceKind::kConfigMap, name)) << name;
  }
  EXPECT_FALSE(made_of(pod, SourceKind::kSecret, ""));
}

TEST(VolumePlan, ARefreshLeavesWhatCannotBeHadAsItIs) {
  const json::value pod = parse(R"({"metadata":{"name":"p"},"spec":{"volumes":[
      {"name":"gone","configMap":{"name":"absent"}}, {"name":"here","configMap":{"name":"map"}},
      {"name":"later","configMap":{"name":"absent","optional":true}},
      {"name":"own","emptyDir":{}}]}})");
  const json::value container = json::object();
  const Refresh plan = plan_refresh({.pod = pod, .container = container, .lookup = look_up_map});
  ASSERT_EQ(plan.volumes.size(), 2U);
  EXPECT_EQ(plan.volumes[0].name, "here");
  EXPECT_EQ(plan.volumes[0].files.size(), 2U);
  EXPECT_EQ(plan.volumes[1].name, "later");
  EXPECT_TRUE(plan.volumes[1].files.empty());
  EXPECT_EQ(plan.problems,
            std::vector<std::string>{"volume \"gone\": configmap \"absent\" not found"});
}

TEST(VolumePlan, LimitsOnDiskAreThoseThatAreGiven) {
  const auto limits = volume_limits(parse(R"({"spec":{"volumes":[
      {"name":"a","emptyDir":{"sizeLimit":"1Mi"}}, {"name":"b","emptyDir":{}},
      {"name":"c","emptyDir":{"sizeLimit":"1Mi","medium":"Memory"}},
      {"name":"d","emptyDir":{"sizeLimit":"0"}}, {"name":"e","hostPath":{"path":"/x"}}]}})"));
  ASSERT_EQ(limits.size(), 1U);
  EXPECT_EQ(limits[0].volume, "a");
  EXPECT_EQ(limits[0].bytes, 1 << 20);
  EXPECT_EQ(limits[0].text, "1Mi");
}

TEST_F(VolumesTest, WhatIsOnDiskCountsTowardsTheLimit) {
  fs::create_directories(folder_ + "/volumes/v/deep");
  const std::vector<VolumeLimit> limits = {{.volume = "v", .bytes = 64 << 10, .text = "64Ki"}};
  std::ofstream(folder_ + "/volumes/v/holes") << "x";
  fs::resize_file(folder_ + "/volumes/v/holes", 1 << 30);
  fs::create_directory_symlink("/usr", folder_ + "/volumes/v/elsewhere");
  EXPECT_FALSE(exceeded(folder_, limits));
  std::ofstream(folder_ + "/volumes/v/deep/full") << std::string(100 << 10, 'x');
  const auto over = exceeded(folder_, limits);
  ASSERT_TRUE(over);
  EXPECT_EQ(over->text, "64Ki");
  EXPECT_FALSE(exceeded(folder_ + "/nowhere", limits));
}

TEST_F(VolumesTest, AMountOfAVolumeThatIsNotThereIsAnError) {
  const auto mounts =
      container_mounts(parse(R"({"volumeMounts":[{"name":"w","mountPath":"/m"}]})"), {}, {});
  ASSERT_FALSE(mounts);
  EXPECT_NE(mounts.error().message.find("\"w\""), std::string::npos);
}

}  // namespace
}  // namespace skiff::node
