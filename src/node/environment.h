// The environment and command line of a container, built from the pod and what it refers to. Pure:
// config maps and secrets come through a lookup.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace skiff::node {

// In order of definition; a name occurs once.
using Variables = std::vector<std::pair<std::string, std::string>>;

// A ConfigMap, Secret or claim of the pod's namespace, or a volume. kNotFound where it does not
// exist.
enum class SourceKind { kConfigMap, kSecret, kClaim, kVolume };
using Lookup = std::function<Result<json::value>(SourceKind kind, std::string_view name)>;

// A token of the pod's service account, for one of its projected volumes.
struct TokenWish {
  std::string ns = {};
  std::string account = {};
  std::string pod = {};
  std::string pod_uid = {};
  std::string audience = {};  // empty: the API server itself
  std::int64_t seconds = 3600;
};
using TokenSource = std::function<Result<std::string>(const TokenWish& wish)>;

struct EnvironmentInput {
  const json::value& pod;  // as it will be told: status has the addresses
  const json::value& container;
  Lookup lookup = {};
  TokenSource tokens = {};    // absent: pods get none on this node
  Variables machine = {};     // of the Skiff process, all of it: only what helps is passed on
  Variables image = {};       // of the image or its mapping
  Variables services = {};    // where services are (service_links.h)
  Variables devices = {};     // of the devices that the container got
  std::string venv = {};      // folder of a Python environment to run in; empty: none
  bool host_image = true;     // PATH and HOME are the machine's
  std::string api_host = {};  // where the pod finds the API; empty: it is not told
  int api_port = 0;
  std::int64_t node_cpu_milli = 0;  // what a container without limits may use
  std::int64_t node_memory_bytes = 0;
  std::string volumes_folder = {};  // where volumes that were made for claims are
};

// Errors are sentences for CreateContainerConfigError.
Result<Variables> build_environment(const EnvironmentInput& input);

// $(NAME) by its value, $$ by $; a name that is not there is left as it stands. What becomes larger
// than the kernel passes to a program is an error.
Result<std::string> expand(std::string_view text, const Variables& variables);
Result<std::vector<std::string>> expand_all(const json::array& texts, const Variables& variables);

// The value of a downward API field (metadata.labels['a'], status.podIP), or what is wrong.
Result<std::string> field_value(const json::value& pod, std::string_view path);
// limits.cpu and friends, divided and rounded up.
Result<std::string> resource_value(const EnvironmentInput& input, const json::value& container,
                                   const json::value& reference);

// The text or bytes under a key of a ConfigMap (data, binaryData) or Secret (data in base64).
std::vector<std::pair<std::string, std::string>> source_entries(SourceKind kind,
                                                                const json::value& source);

}  // namespace skiff::node
