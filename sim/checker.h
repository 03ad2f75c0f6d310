// Something that must hold whenever people could look. One file for each in sim/checkers/, one line
// in sim/checkers.cc.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "client/client.h"
#include "sim/workload.h"

namespace skiff::sim {

// The world as it is on disk, with the garbage collected.
struct View {
  Time now = {};
  // No fault has struck since all was settled: what happens now is the work of controllers alone.
  bool calm = false;
  std::uint64_t revision = 0;
  std::uint64_t promised = 0;  // no power cut may undo what was written up to this revision
  // By api::Resource::key(): the roots, everything that controllers own, pods and nodes.
  std::map<std::string, std::vector<Object>> objects = {};
  std::vector<std::string> roots = {};  // keys of the roots' resources
  const Workload* workload = nullptr;
  client::Client* client = nullptr;  // the server itself, without faults
  std::vector<api::Resource> resources = {};

  const std::vector<Object>& of(const std::string& resource) const;
};

class Checker {
 public:
  virtual ~Checker() = default;
  virtual std::string_view name() const = 0;
  // What is wrong, as a sentence.
  virtual std::optional<std::string> check(const View& view) = 0;
  // The server is about to die, and with it every watch; after a power cut it may be in an earlier
  // state. Nothing has reached the disk since the last check().
  virtual void dies(bool power_cut) { (void)power_cut; }
  // The server has come back and nobody has done anything yet.
  virtual std::optional<std::string> check_reopened(const View& view) {
    (void)view;
    return std::nullopt;
  }
};

std::vector<std::unique_ptr<Checker>> all_checkers();

}  // namespace skiff::sim
