// Volumes behind claims, as the node sees them: where they are, and what becomes of them.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "node/agent_impl.h"
#include "node/testing/parse.h"
#include "node/volumes.h"

namespace skiff::node {
namespace {

namespace fs = std::filesystem;

const std::string kMade = R"({"metadata":{"name":"pv","annotations":{
    "pv.kubernetes.io/provisioned-by":"skiff.dev/local-path"}},"spec":{
    "hostPath":{"path":"/data/volumes/pv"},"claimRef":{"uid":"c1"}}})";

class ClaimPlan : public ::testing::Test {
 protected:
  Result<Volume> plan(const std::string& source = R"("persistentVolumeClaim":{"claimName":"c"})") {
    const json::value pod = parse(R"({"metadata":{"name":"p","uid":"u1"},"spec":{"volumes":[
        {"name":"v",)" + source + "}]}}");
    const json::value container = json::object();
    auto volumes =
        plan_volumes({.pod = pod,
                      .container = container,
                      .lookup = [&](SourceKind kind, std::string_view name) -> Result<json::value> {
                        const bool claim = kind == SourceKind::kClaim;
                        const std::string& text = claim ? claim_ : volume_;
                        asked_ += std::string(name) + " ";
                        if (text.empty()) return fail(Code::kNotFound, "none");
                        return parse(text);
                      },
                      .volumes_folder = "/data/volumes"});
    if (!volumes) return std::unexpected(volumes.error());
    return std::move(volumes->at(0));
  }
  std::string error() {
    const auto volume = plan();
    return volume ? "none" : volume.error().message;
  }

  std::string claim_ = R"({"metadata":{"name":"c","uid":"c1","annotations":{
      "pv.kubernetes.io/bind-completed":"yes"}},"spec":{"volumeName":"pv"},
      "status":{"phase":"Bound"}})";
  std::string volume_ = kMade;
  std::string asked_ = {};
};

TEST_F(ClaimPlan, AFolderThatWasMadeForTheClaimIsMounted) {
  const auto volume = plan();
  ASSERT_TRUE(volume) << volume.error().message;
  EXPECT_EQ(volume->kind, VolumeKind::kClaim);
  EXPECT_EQ(volume->host_path, "/data/volumes/pv");
  EXPECT_FALSE(volume->read_only);
  EXPECT_EQ(asked_, "c pv ");
  EXPECT_TRUE(plan(R"("persistentVolumeClaim":{"claimName":"c","readOnly":true})")->read_only);
}

TEST_F(ClaimPlan, AVolumeMadeByHandIsAnOrdinaryPathOfTheMachine) {
  // A path into Skiff's data is one of those that no pod may have, whatever the volume says.
  volume_ = R"({"metadata":{"name":"pv"},"spec":{"hostPath":{"path":"/data/volumes/pv",
      "type":"Directory"},"claimRef":{"uid":"c1"}}})";
  EXPECT_EQ(plan()->kind, VolumeKind::kHostPath);
  EXPECT_EQ(plan()->host_type, "Directory");
  volume_ = R"({"metadata":{"name":"pv","annotations":{
      "pv.kubernetes.io/provisioned-by":"skiff.dev/local-path"}},
      "spec":{"local":{"path":"/mnt/disk"},"claimRef":{"uid":"c1"}}})";
  EXPECT_EQ(plan()->kind, VolumeKind::kHostPath);
  EXPECT_EQ(plan()->host_path, "/mnt/disk");
}

TEST_F(ClaimPlan, SaysWhatIsMissing) {
  volume_ = R"({"metadata":{"name":"pv"},"spec":{"nfs":{},"claimRef":{"uid":"c1"}}})";
  EXPECT_NE(error().find("hostPath and local are"), std::string::npos);
  volume_ = R"({"metadata":{"name":"pv"},"spec":{"claimRef":{"uid":"other"}}})";
  EXPECT_EQ(error(), "volume \"v\": persistentvolume \"pv\" belongs to another claim");
  volume_.clear();
  EXPECT_EQ(error(), "volume \"v\": persistentvolume \"pv\" not found");
  claim_ = R"({"metadata":{"name":"c"},"status":{"phase":"Pending"}})";
  EXPECT_EQ(error(), "volume \"v\": persistentvolumeclaim \"c\" is not bound");
  claim_.clear();
  EXPECT_EQ(error(), "volume \"v\": persistentvolumeclaim \"c\" not found");
}

TEST_F(ClaimPlan, AnEphemeralVolumeMustBeThePodsOwn) {
  const std::string ephemeral = R"("ephemeral":{"volumeClaimTemplate":{}})";
  EXPECT_FALSE(plan(ephemeral));
  claim_ = R"({"metadata":{"name":"p-v","uid":"c1","ownerReferences":[{"uid":"u1",
      "controller":true}],"annotations":{"pv.kubernetes.io/bind-completed":"yes"}},
      "spec":{"volumeName":"pv"},"status":{"phase":"Bound"}})";
  asked_.clear();
  EXPECT_TRUE(plan(ephemeral));
  EXPECT_EQ(asked_, "p-v pv ");
}

TEST(ClaimFolder, IsTheOneOfItsNameAndNoOther) {
  EXPECT_EQ(claim_folder(parse(kMade), "/data/volumes"), "/data/volumes/pv");
  EXPECT_EQ(claim_folder(parse(kMade), "/moved/volumes"), "/moved/volumes/pv");
  EXPECT_FALSE(claim_folder(parse(kMade), ""));
  for (const char* name : {"", ".", "..", "a/b"}) {
    json::value volume = parse(kMade);
    json::set(volume, {"metadata", "name"}, name);
    json::set(volume, {"spec", "hostPath", "path"},
              json::string(std::string("/data/volumes/") + name));
    EXPECT_FALSE(claim_folder(volume, "/data/volumes")) << name;
  }
}

TEST(ClaimFolder, IsMadeForEveryUserAndLeftAsItIs) {
  char pattern[] = "/tmp/skiff-claims-XXXXXX";
  const std::string root = ::mkdtemp(pattern);
  const Volume volume{.name = "v", .kind = VolumeKind::kClaim, .host_path = root + "/volumes/pv"};
  // Skiff's data is hidden from pods, but for this.
  const auto made = make_volume(root + "/pod", volume, {root});
  ASSERT_TRUE(made) << made.error().message;
  struct stat info = {};
  ASSERT_EQ(::stat(made->c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0777U);
  std::ofstream(*made + "/file") << "x";
  ASSERT_EQ(::chmod(made->c_str(), 0700), 0);
  EXPECT_EQ(make_volume(root + "/pod2", volume, {root}).value_or("none"), *made);
  EXPECT_TRUE(fs::exists(*made + "/file"));
  ASSERT_EQ(::stat(made->c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700U);
  fs::remove_all(root);
}

TEST(Afterlives, OfAVolumeFollowItsPolicy) {
  const auto of = [](std::string_view phase, std::string_view policy, bool deleting,
                     bool held = true) {
    json::value volume = parse(kMade);
    json::set(volume, {"status", "phase"}, json::string(phase));
    json::set(volume, {"spec", "persistentVolumeReclaimPolicy"}, json::string(policy));
    if (deleting) json::set(volume, {"metadata", "deletionTimestamp"}, "2026-01-01T00:00:00Z");
    if (held) {
      json::set(volume, {"metadata", "finalizers"}, json::array{"x/y", "skiff.dev/volume-folder"});
    }
    return afterlife(volume, "/data/volumes");
  };
  EXPECT_EQ(of("Bound", "Delete", false), Afterlife::kNone);
  EXPECT_EQ(of("Bound", "Delete", true), Afterlife::kNone);
  EXPECT_EQ(of("Available", "Delete", false), Afterlife::kNone);
  EXPECT_EQ(of("Released", "Delete", false), Afterlife::kRemove);
  EXPECT_EQ(of("Released", "Delete", true), Afterlife::kRemove);
  EXPECT_EQ(of("Released", "Delete", true, false), Afterlife::kNone);
  EXPECT_EQ(of("Released", "Retain", false), Afterlife::kNone);
  EXPECT_EQ(of("Released", "Retain", true), Afterlife::kLetGo);
}

}  // namespace
}  // namespace skiff::node
