#include "node/remote_shell.h"

#include <algorithm>

#include "api/meta.h"

namespace skiff::node {
namespace {

// /opt/kube/kubectl itself, or a folder it would be in.
bool takes_its_place(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  return kRemoteShell == path ||
         (kRemoteShell.starts_with(path) && kRemoteShell.substr(path.size()).starts_with('/'));
}

}  // namespace

void add_remote_shell(const json::value& pod, const json::value& container,
                      const std::string& binary, ContainerSpec& spec) {
  if (binary.empty() || api::annotation(pod, kRemoteShellAnnotation) != "true") return;
  const json::array& own = json::get_array(container, {"volumeMounts"});
  const bool taken =
      std::ranges::any_of(own,
                          [](const json::value& mount) {
                            return takes_its_place(json::get_string(mount, {"mountPath"}));
                          }) ||
      std::ranges::any_of(spec.mounts,
                          [](const Mount& mount) { return takes_its_place(mount.target); });
  if (taken) return;
  spec.mounts.push_back({.source = binary, .target = std::string(kRemoteShell), .read_only = true});
}

}  // namespace skiff::node
