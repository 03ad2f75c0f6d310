// Time zones from the machine's own database (tzdata).
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time_zone.h"

namespace skiff::env::posix {

// Thread-safe: plans that take long are made on another thread than the rest.
class Zones {
 public:
  explicit Zones(std::vector<std::string> folders = {"/usr/share/zoneinfo", "/usr/lib/zoneinfo",
                                                     "/usr/share/lib/zoneinfo", "/etc/zoneinfo"});

  // Each file is read once: rules change with the machine's packages, which restart what they
  // serve.
  Result<TimeZone> zone(const std::string& name);

 private:
  Result<TimeZone> read(const std::string& name) const;

  std::vector<std::string> folders_;
  std::mutex mutex_;  // over known_
  std::map<std::string, TimeZone> known_ = {};
};

}  // namespace skiff::env::posix
