// Backups of a running Skiff, and the way back: staged in the data folder while it runs, put in
// place before the next start opens the store.
#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "assembly/data_folder.h"
#include "base/http.h"
#include "base/time.h"
#include "cli/cli.h"
#include "store/store.h"

namespace skiff::assembly {

// Answers GET /skiff/v1/backup with a backup of this moment. One at a time.
class Backups {
 public:
  explicit Backups(const DataFolder& folder) : folder_(folder) {}
  http::Response answer(store::Store& store, Time now);

 private:
  const DataFolder& folder_;
  std::mutex one_;
};

// What is in a backup, after all of it has been checked. The file stays as it is.
Result<cli::BackupSummary> inspect_backup(const std::string& file);
// Puts a checked copy into the data folder of a Skiff that runs; its next start takes it.
Result<cli::BackupSummary> stage_restore(const std::string& file, const std::string& data);
// Into the data folder of a Skiff that does not run. Where the state before is kept.
Result<std::string> restore_stopped(const std::string& file, const std::string& data);

struct Restored {
  std::string taken_at = {};
  std::string kept = {};  // where the state before is; empty: there was none
};
// Puts the staged backup in place, where there is one; before the store is opened. An error means
// that the old state stands, and that what was staged has been put aside.
Result<std::optional<Restored>> take_staged(const DataFolder& folder, Time now);

}  // namespace skiff::assembly
