// The volumes of a pod: planned purely from the pod and what it refers to, then made on disk.
//
// Files from config maps, secrets and the downward API are written as Kubernetes writes them: into
// a fresh folder that a symlink (..data) is swapped to, so that a reader never sees half an update.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "node/environment.h"
#include "node/runtime.h"

namespace skiff::node {

struct VolumeFile {
  std::string path = {};  // relative to the volume
  std::string data = {};
  int mode = 0644;
};

enum class VolumeKind { kEmptyDir, kMemory, kFiles, kHostPath, kClaim };

struct Volume {
  std::string name = {};
  VolumeKind kind = VolumeKind::kEmptyDir;
  std::optional<int> group = {};       // that it belongs to
  std::vector<VolumeFile> files = {};  // kFiles
  std::size_t file_bytes = 0;          // of all of these
  std::string host_path = {};          // kHostPath, kClaim
  std::string host_type = {};          // Directory, DirectoryOrCreate, File, FileOrCreate or empty
  std::int64_t memory_bytes = 0;       // kMemory
  bool read_only = false;              // for every container
};

// Where a volume is, for those who mount it.
struct Place {
  std::string path = {};
  std::optional<std::int64_t> memory_bytes = {};  // as in Mount
  bool read_only = false;
  std::vector<std::string> hidden = {};  // of a hostPath: what no subPath may lead to
};

// Why volumes cannot be had: kNotFound while something they refer to is missing (try again),
// kInvalid for what will not get better by waiting.
// `environment` gives pod and lookup; its container is not used.
Result<std::vector<Volume>> plan_volumes(const EnvironmentInput& environment);

// What the volumes of a running pod are to hold now: those made of files, where they can be had.
// One whose source is gone stays as it is, and `problems` says why.
struct Refresh {
  std::vector<Volume> volumes = {};
  std::vector<std::string> problems = {};
};
Refresh plan_refresh(const EnvironmentInput& environment);

// The folder of a PersistentVolume that was made for a claim, in `volumes_folder` also where the
// data directory has moved since; nothing for any other volume, whatever path it names.
std::optional<std::string> claim_folder(const json::value& volume,
                                        const std::string& volumes_folder);

// Whether a volume of the pod is made of this config map or secret.
bool made_of(const json::value& pod, SourceKind kind, std::string_view name);

// The emptyDir volumes on disk that may not grow beyond a limit.
struct VolumeLimit {
  std::string volume = {};
  std::int64_t bytes = 0;
  std::string text = {};  // as the user wrote it
};
std::vector<VolumeLimit> volume_limits(const json::value& pod);

// The real path of what a pod is to see of this machine, with no symbolic link in it. An error
// where it is inside one of the `hidden` folders; where one of them is inside of it, the mount
// covers that. It need not exist.
Result<std::string> shown_path(const std::string& path, const std::vector<std::string>& hidden);

// Makes the volume under the pod's folder and returns the path to mount. Again with other files:
// swaps them; with the same ones: changes nothing. `hidden` are folders that no pod may see.
Result<std::string> make_volume(const std::string& pod_folder, const Volume& volume,
                                const std::vector<std::string>& hidden);

// The first of the limits that is exceeded. Stops counting where the answer is known.
std::optional<VolumeLimit> exceeded(const std::string& pod_folder,
                                    const std::vector<VolumeLimit>& limits);

// The container's volumeMounts, given where each volume is. subPath cannot leave its volume.
Result<std::vector<Mount>> container_mounts(const json::value& container,
                                            const std::map<std::string, Place>& volumes,
                                            const Variables& variables);

// Relative, not empty, and no component is "..".
bool stays_inside(std::string_view path);

}  // namespace skiff::node
