// What upstream's operators count of training jobs, in their words, for whoever scrapes /metrics.
//
// Counted is what is seen to change, so that it makes no difference who changed it. Like upstream's
// the counters begin anew with every start: objects that are older than it were counted before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/kind.h"
#include "base/json.h"
#include "base/time.h"
#include "features/training/engine/job_kind.h"

namespace skiff::training {

class Tally {
 public:
  explicit Tally(Time started);

  // What changed() is to be told of: the jobs of each kind, then pods, then services.
  static std::vector<api::Resource> watched();
  // `before` is null for an object that appears, `after` for one that is gone. `which` is its
  // place in watched().
  void changed(std::size_t which, const json::value* before, const json::value* after);

  std::string text() const;  // as Prometheus reads it

 private:
  struct Jobs {
    std::uint64_t created = 0;
    std::uint64_t deleted = 0;
    std::uint64_t successful = 0;
    std::uint64_t failed = 0;
    std::uint64_t restarted = 0;
  };
  struct Children {
    std::uint64_t created = 0;
    std::uint64_t deleted = 0;
    std::uint64_t failed = 0;
  };

  bool is_new(const json::value& object) const;
  void job_changed(const JobKind& kind, const json::value* before, const json::value* after);
  void child_changed(Children& children, const json::value* before, const json::value* after) const;
  Jobs sum(std::string_view framework) const;

  Time started_;
  std::map<std::pair<std::string, std::string>, Jobs> jobs_ = {};  // by namespace and framework
  Children pods_ = {};
  Children services_ = {};
  std::set<std::pair<std::string, std::string>> launchers_ = {};  // of MPIJobs, with namespaces
};

}  // namespace skiff::training
