#include "env/posix/zones.h"

#include <fstream>
#include <sstream>
#include <utility>

namespace skiff::env::posix {

Zones::Zones(std::vector<std::string> folders) : folders_(std::move(folders)) {}

Result<TimeZone> Zones::zone(const std::string& name) {
  const std::lock_guard lock(mutex_);
  if (const auto found = known_.find(name); found != known_.end()) return found->second;
  SKIFF_ASSIGN(TimeZone zone, read(name));
  known_.emplace(name, zone);
  return zone;
}

Result<TimeZone> Zones::read(const std::string& name) const {
  if (name.empty() || name == "UTC") return TimeZone();
  // Only names of zones become paths.
  if (time_zone_exists(name)) {
    for (const std::string& folder : folders_) {
      std::ifstream file(folder + "/" + name, std::ios::binary);
      if (!file) continue;
      std::stringstream bytes;
      bytes << file.rdbuf();
      return TimeZone::parse_tzif(bytes.str());
    }
  }
  return fail(Code::kNotFound, "unknown time zone " + name);
}

}  // namespace skiff::env::posix
