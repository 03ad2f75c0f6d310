#include "assembly/backup.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <future>

#include "apiserver/status.h"
#include "assembly/platform.h"
#include "env/posix/clock.h"
#include "store/backup.h"

namespace skiff::assembly {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr const char* kStaged = "restore.staged";
// The disk that does not take the newest write by then will not take a backup either.
constexpr auto kVisibleTime = 30s;

// A file that nobody can find any more, sent as it is read.
class FileStream : public http::Stream {
 public:
  explicit FileStream(int fd) : fd_(fd) {}
  ~FileStream() override { close(fd_); }
  FileStream(const FileStream&) = delete;
  FileStream& operator=(const FileStream&) = delete;

  bool pull(std::string& out, std::function<void()>) override {
    out.resize(256 * 1024);
    const ssize_t size = read(fd_, out.data(), out.size());
    out.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
    return size > 0;
  }

 private:
  const int fd_;
};

Result<void> wait_until_visible(store::Store& store, store::Revision revision) {
  auto done = std::make_shared<std::promise<void>>();
  auto visible = done->get_future();
  store.when_visible(revision, [done] { done->set_value(); });
  if (visible.wait_for(kVisibleTime) == std::future_status::ready) return {};
  return fail(Code::kServiceUnavailable, "the disk does not take the newest writes");
}

// What makes this Skiff itself: who signs, whom it trusts, what its node is called.
std::vector<store::BackupFile> own_files(const DataFolder& folder) {
  std::vector<store::BackupFile> out;
  const auto add = [&](const std::string& name) {
    if (auto bytes = read_file(folder.at(name))) out.push_back({name, std::move(*bytes)});
  };
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder.at("pki"), error)) {
    if (entry.is_regular_file(error)) add("pki/" + entry.path().filename().string());
  }
  add("node-name");
  return out;
}

Result<void> sync_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const bool synced = fd >= 0 && fsync(fd) == 0;
  if (fd >= 0) close(fd);
  if (!synced) return fail(Code::kInternal, fmt::format("cannot sync {}", path));
  return {};
}

// A private copy, on disk when this returns.
Result<void> copy_private(const std::string& from, const std::string& to) {
  std::error_code error;
  fs::copy_file(from, to, fs::copy_options::overwrite_existing, error);
  if (error) {
    return fail(Code::kNotFound,
                fmt::format("cannot copy {} to {}: {}", from, to, error.message()));
  }
  chmod(to.c_str(), 0600);
  return sync_file(to);
}

Result<void> move(const std::string& from, const std::string& to) {
  std::error_code error;
  fs::rename(from, to, error);
  if (error) {
    return fail(Code::kInternal,
                fmt::format("cannot move {} to {}: {}", from, to, error.message()));
  }
  return {};
}

cli::BackupSummary summary_of(const store::Backup& backup) {
  return {.taken_at = backup.taken_at,
          .taken_by = backup.taken_by,
          .objects = backup.objects,
          .revision = backup.revision};
}

// A new folder for the state before. Empty where there is no state.
Result<std::string> keep_old(const DataFolder& folder, Time now) {
  std::error_code error;
  if (!fs::exists(folder.at("objects.db"), error)) return std::string();
  std::string kept = folder.at("before-restore-" + rfc3339(now));
  std::erase(kept, ':');
  for (int n = 2; fs::exists(kept, error); ++n) kept += fmt::format("-{}", n);
  if (mkdir(kept.c_str(), 0700) != 0) {
    return fail(Code::kInternal, fmt::format("cannot make {}", kept));
  }
  fs::copy(folder.at("pki"), kept + "/pki", fs::copy_options::recursive, error);
  if (error && fs::exists(folder.at("pki"))) {
    return fail(Code::kInternal, fmt::format("cannot keep the old pki: {}", error.message()));
  }
  // The log first: a database without it is older, a log without its database is nothing.
  for (const char* name : {"objects.db-mark", "objects.db-shm", "objects.db-wal", "objects.db"}) {
    if (fs::exists(folder.at(name), error)) SKIFF_TRY(move(folder.at(name), kept + "/" + name));
  }
  return kept;
}

Result<Restored> put_in_place(const DataFolder& folder, const std::string& staged, Time now) {
  const std::string fresh = folder.at("restore.new");
  for (const char* tail : {"", "-wal", "-shm", "-mark"}) unlink((fresh + tail).c_str());
  SKIFF_TRY(copy_private(staged, fresh));
  const store::Revision seen = store::last_revision(folder.at("objects.db"));
  SKIFF_ASSIGN(const store::Backup backup, store::open_backup(fresh, seen));
  SKIFF_ASSIGN(std::string kept, keep_old(folder, now));
  mkdir(folder.at("pki").c_str(), 0700);
  for (const store::BackupFile& file : backup.files) {
    SKIFF_TRY(write_file(folder.at(file.name), file.bytes, 0600));
  }
  SKIFF_TRY(move(fresh, folder.at("objects.db")));
  unlink((fresh + "-mark").c_str());
  SKIFF_TRY(sync_file(folder.path()));
  return Restored{.taken_at = backup.taken_at, .kept = std::move(kept)};
}

}  // namespace

http::Response Backups::answer(store::Store& store, Time now) {
  const std::unique_lock lock(one_, std::try_to_lock);
  if (!lock) {
    return apiserver::error_response(
        {.code = Code::kTooManyRequests, .message = "a backup is being made", .retry_after_s = 1});
  }
  const std::string path = folder_.at("backup.part");
  const auto make = [&]() -> Result<void> {
    SKIFF_ASSIGN(const store::Snapshot snapshot, store::take_snapshot(store));
    SKIFF_TRY(wait_until_visible(store, snapshot.revision));
    return store::write_backup(
        path, snapshot,
        {.taken_at = rfc3339(now), .taken_by = kVersion, .files = own_files(folder_)});
  };
  const auto made = make();
  const int fd = made ? ::open(path.c_str(), O_RDONLY | O_CLOEXEC) : -1;
  unlink(path.c_str());
  if (!made) return apiserver::error_response(made.error());
  if (fd < 0) {
    return apiserver::error_response({.message = fmt::format("cannot read {}", path)});
  }
  return {.headers = {{"Content-Type", "application/vnd.sqlite3"}},
          .stream = std::make_unique<FileStream>(fd)};
}

Result<cli::BackupSummary> inspect_backup(const std::string& file) {
  std::array<char, 64> folder{"/tmp/skiff-backup-XXXXXX"};
  if (mkdtemp(folder.data()) == nullptr) return fail(Code::kInternal, "cannot write to /tmp");
  const std::string copy = std::string(folder.data()) + "/copy";
  const auto inspect = [&]() -> Result<cli::BackupSummary> {
    SKIFF_TRY(copy_private(file, copy));
    SKIFF_ASSIGN(const store::Backup backup, store::open_backup(copy, 0));
    return summary_of(backup);
  };
  auto out = inspect();
  std::error_code ignored;
  fs::remove_all(folder.data(), ignored);
  if (!out) out.error().message = fmt::format("{}: {}", file, out.error().message);
  return out;
}

Result<cli::BackupSummary> stage_restore(const std::string& file, const std::string& data) {
  SKIFF_ASSIGN(const cli::BackupSummary summary, inspect_backup(file));
  const std::string part = data + "/restore.part";
  SKIFF_TRY(copy_private(file, part));
  SKIFF_TRY(move(part, data + "/" + kStaged));
  return summary;
}

Result<std::string> restore_stopped(const std::string& file, const std::string& data) {
  SKIFF_ASSIGN(const DataFolder folder, DataFolder::open(data));
  SKIFF_TRY(stage_restore(file, folder.path()));
  SKIFF_ASSIGN(const auto restored, take_staged(folder, env::posix::Clock().now()));
  return restored ? restored->kept : std::string();
}

Result<std::optional<Restored>> take_staged(const DataFolder& folder, Time now) {
  const std::string staged = folder.at(kStaged);
  if (access(staged.c_str(), F_OK) != 0) return std::optional<Restored>();
  auto done = put_in_place(folder, staged, now);
  if (done) {
    unlink(staged.c_str());
    return std::optional(std::move(*done));
  }
  // A start after this one must not try it again.
  const std::string refused = folder.at("restore.refused");
  (void)move(staged, refused);
  done.error().message += fmt::format("; the backup was put aside as {}", refused);
  return std::unexpected(std::move(done).error());
}

}  // namespace skiff::assembly
