#include "env/testing/sim_disk.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "base/check.h"

namespace skiff::env::testing {
namespace {

constexpr std::size_t kSector = 512;

// A change that is not on the disk yet.
struct Change {
  bool truncates = false;
  std::size_t offset = 0;  // or the new size
  std::string data = {};
};

void apply_change(std::string& bytes, const Change& change) {
  if (change.truncates) {
    bytes.resize(change.offset);
    return;
  }
  bytes.resize(std::max(bytes.size(), change.offset + change.data.size()));
  bytes.replace(change.offset, change.data.size(), change.data);
}

struct File {
  std::string cached = {};   // what programs read
  std::string durable = {};  // what is on the disk
  std::vector<Change> unsynced = {};
};
using FilePtr = std::shared_ptr<File>;
using Folder = std::map<std::string, FilePtr>;

// What chance leaves of one unsynced write.
void apply_torn(std::string& bytes, const Change& change, Random& random, unsigned kept_percent) {
  if (change.truncates) {
    if (random.chance(kept_percent)) apply_change(bytes, change);
    return;
  }
  const std::size_t end = change.offset + change.data.size();
  const std::size_t before = bytes.size();
  // The size of a file is kept apart from its contents.
  if (end > before && random.chance(kept_percent)) {
    bytes.resize(end);
    const bool noise = random.chance(50);
    for (std::size_t i = before; i < end; ++i) {
      bytes[i] = noise ? static_cast<char>(random.next()) : '\0';
    }
  }
  for (std::size_t at = change.offset; at < end;) {
    std::size_t next = std::min(end, (at / kSector + 1) * kSector);
    const std::size_t sector_end = next;
    if (random.chance(3)) next = at + random.below(next - at + 1);
    if (random.chance(kept_percent)) {
      apply_change(bytes,
                   {.offset = at, .data = change.data.substr(at - change.offset, next - at)});
    }
    at = sector_end;
  }
}

}  // namespace

struct SimDisk::State {
  explicit State(std::uint64_t seed) : random(seed) {}

  mutable std::mutex mutex;
  Random random;
  std::string name;
  sqlite3_vfs vfs = {};
  Folder cached;   // the folder as programs see it
  Folder durable;  // and as it is on the disk
  std::uint64_t generation = 0;
  std::uint64_t operations = 0;
  std::uint64_t fault_at = UINT64_MAX;
  Fault fault = Fault::kFull;
  bool struck = false;
  bool dead = false;
  bool lies = false;

  // Counts the operation; true where the planned fault strikes it.
  bool strikes(bool sync) {
    const bool due = operations++ >= fault_at;
    if (!due || (fault != Fault::kDeath && (fault == Fault::kSync) != sync)) return false;
    struck = true;
    if (fault == Fault::kDeath) {
      dead = true;
      ++generation;
    }
    return true;
  }
  void sync_folder() {
    if (!lies) durable = cached;
  }
};

// The functions that SQLite calls. Errors are those of its own file system for the same cause.
struct SimVfs {
  struct Handle {
    sqlite3_file base;  // first: SQLite sees no more
    SimDisk::State* disk;
    FilePtr* file;
    std::uint64_t generation;
    bool new_log;  // its folder must be synced with it
  };

  static Handle& of(sqlite3_file* file) { return *reinterpret_cast<Handle*>(file); }
  static SimDisk::State& disk_of(sqlite3_vfs* vfs) {
    return *static_cast<SimDisk::State*>(vfs->pAppData);
  }
  static bool gone(const Handle& handle) { return handle.generation != handle.disk->generation; }

  static int close(sqlite3_file* file) {
    delete of(file).file;
    return SQLITE_OK;
  }

  static int read(sqlite3_file* file, void* into, int amount, sqlite3_int64 offset) {
    Handle& handle = of(file);
    const std::lock_guard lock(handle.disk->mutex);
    if (gone(handle)) return SQLITE_IOERR_READ;
    const std::string& bytes = (*handle.file)->cached;
    const auto at = std::min(static_cast<std::size_t>(offset), bytes.size());
    const auto size = std::min(static_cast<std::size_t>(amount), bytes.size() - at);
    std::memcpy(into, bytes.data() + at, size);
    if (size == static_cast<std::size_t>(amount)) return SQLITE_OK;
    std::memset(static_cast<char*>(into) + size, 0, static_cast<std::size_t>(amount) - size);
    return SQLITE_IOERR_SHORT_READ;
  }

  static void change(const Handle& handle, Change change) {
    apply_change((*handle.file)->cached, change);
    (*handle.file)->unsynced.push_back(std::move(change));
  }

  static int write(sqlite3_file* file, const void* from, int amount, sqlite3_int64 offset) {
    Handle& handle = of(file);
    const std::lock_guard lock(handle.disk->mutex);
    if (gone(handle)) return SQLITE_IOERR_WRITE;
    Change whole{.offset = static_cast<std::size_t>(offset),
                 .data = {static_cast<const char*>(from), static_cast<std::size_t>(amount)}};
    if (handle.disk->strikes(false)) {
      // Some of it may have been written before the room ended or the process died.
      whole.data.resize(handle.disk->random.below(whole.data.size()));
      if (handle.disk->random.chance(50)) change(handle, std::move(whole));
      return handle.disk->fault == SimDisk::Fault::kFull ? SQLITE_FULL : SQLITE_IOERR_WRITE;
    }
    change(handle, std::move(whole));
    return SQLITE_OK;
  }

  static int truncate(sqlite3_file* file, sqlite3_int64 size) {
    Handle& handle = of(file);
    const std::lock_guard lock(handle.disk->mutex);
    if (gone(handle)) return SQLITE_IOERR_TRUNCATE;
    // Becoming smaller needs no room.
    const bool full = handle.disk->fault == SimDisk::Fault::kFull;
    if (handle.disk->strikes(false) && !full) return SQLITE_IOERR_TRUNCATE;
    change(handle, {.truncates = true, .offset = static_cast<std::size_t>(size)});
    return SQLITE_OK;
  }

  static int sync(sqlite3_file* file, int /*flags*/) {
    Handle& handle = of(file);
    const std::lock_guard lock(handle.disk->mutex);
    if (gone(handle)) return SQLITE_IOERR_FSYNC;
    File& data = **handle.file;
    if (handle.disk->strikes(true)) {
      if (handle.disk->fault == SimDisk::Fault::kSync) data.unsynced.clear();
      return SQLITE_IOERR_FSYNC;
    }
    if (handle.disk->lies) return SQLITE_OK;
    for (const Change& change : data.unsynced) apply_change(data.durable, change);
    data.unsynced.clear();
    if (handle.new_log) handle.disk->sync_folder();
    handle.new_log = false;
    return SQLITE_OK;
  }

  static int size(sqlite3_file* file, sqlite3_int64* size) {
    const Handle& handle = of(file);
    const std::lock_guard lock(handle.disk->mutex);
    *size = static_cast<sqlite3_int64>((*handle.file)->cached.size());
    return SQLITE_OK;
  }

  static int lock_none(sqlite3_file* /*file*/, int /*level*/) { return SQLITE_OK; }
  static int reserved_lock(sqlite3_file* /*file*/, int* held) {
    *held = 0;
    return SQLITE_OK;
  }
  static int control(sqlite3_file* /*file*/, int /*op*/, void* /*arg*/) { return SQLITE_NOTFOUND; }
  // As SQLite's own file system says of an unknown disk.
  static int sector_size(sqlite3_file* /*file*/) { return 4096; }
  static int characteristics(sqlite3_file* /*file*/) { return SQLITE_IOCAP_POWERSAFE_OVERWRITE; }

  static int open(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* out) {
    static const sqlite3_io_methods kMethods = {
        .iVersion = 1,  // no shared memory: the journal is the only user of its file
        .xClose = close,
        .xRead = read,
        .xWrite = write,
        .xTruncate = truncate,
        .xSync = sync,
        .xFileSize = size,
        .xLock = lock_none,
        .xUnlock = lock_none,
        .xCheckReservedLock = reserved_lock,
        .xFileControl = control,
        .xSectorSize = sector_size,
        .xDeviceCharacteristics = characteristics,
    };
    SimDisk::State& disk = disk_of(vfs);
    const std::lock_guard lock(disk.mutex);
    file->pMethods = nullptr;
    if (disk.dead) return SQLITE_CANTOPEN;
    FilePtr data = std::make_shared<File>();  // SQLite's own temporary files have no name
    bool made = false;
    if (name != nullptr) {
      const auto found = disk.cached.find(name);
      made = found == disk.cached.end();
      if (made && (flags & SQLITE_OPEN_CREATE) == 0) return SQLITE_CANTOPEN;
      data = made ? disk.cached[name] = data : found->second;
    }
    Handle& handle = of(file);
    handle.disk = &disk;
    handle.file = new FilePtr(std::move(data));
    handle.generation = disk.generation;
    handle.new_log = made && (flags & (SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_WAL)) != 0;
    file->pMethods = &kMethods;
    if (out != nullptr) *out = flags;
    return SQLITE_OK;
  }

  static int remove(sqlite3_vfs* vfs, const char* name, int sync_folder) {
    SimDisk::State& disk = disk_of(vfs);
    const std::lock_guard lock(disk.mutex);
    if (disk.dead || disk.strikes(false)) {
      if (disk.dead || disk.fault != SimDisk::Fault::kFull) return SQLITE_IOERR_DELETE;
    }
    if (disk.cached.erase(name) == 0) return SQLITE_IOERR_DELETE_NOENT;
    if (sync_folder != 0) disk.sync_folder();
    return SQLITE_OK;
  }

  static int access(sqlite3_vfs* vfs, const char* name, int /*flags*/, int* out) {
    const SimDisk::State& disk = disk_of(vfs);
    const std::lock_guard lock(disk.mutex);
    *out = disk.cached.contains(name) ? 1 : 0;
    return SQLITE_OK;
  }

  static int full_path(sqlite3_vfs* /*vfs*/, const char* name, int room, char* out) {
    return std::snprintf(out, static_cast<std::size_t>(room), "%s", name) < room ? SQLITE_OK
                                                                                 : SQLITE_CANTOPEN;
  }

  static int randomness(sqlite3_vfs* vfs, int amount, char* out) {
    SimDisk::State& disk = disk_of(vfs);
    const std::lock_guard lock(disk.mutex);
    for (int i = 0; i < amount; ++i) out[i] = static_cast<char>(disk.random.next());
    return amount;
  }

  static int sleep(sqlite3_vfs* /*vfs*/, int microseconds) { return microseconds; }
  static int now(sqlite3_vfs* /*vfs*/, double* day) {
    *day = 2460000.5;
    return SQLITE_OK;
  }
  static int last_error(sqlite3_vfs* /*vfs*/, int /*room*/, char* /*out*/) { return 0; }
};

SimDisk::SimDisk(std::uint64_t seed) : state_(std::make_unique<State>(seed)) {
  static std::atomic<int> count = 0;
  state_->name = fmt::format("sim-disk-{}", ++count);
  state_->vfs = {.iVersion = 1,
                 .szOsFile = sizeof(SimVfs::Handle),
                 .mxPathname = 512,
                 .zName = state_->name.c_str(),
                 .pAppData = state_.get(),
                 .xOpen = SimVfs::open,
                 .xDelete = SimVfs::remove,
                 .xAccess = SimVfs::access,
                 .xFullPathname = SimVfs::full_path,
                 .xRandomness = SimVfs::randomness,
                 .xSleep = SimVfs::sleep,
                 .xCurrentTime = SimVfs::now,
                 .xGetLastError = SimVfs::last_error};
  SKIFF_CHECK(sqlite3_vfs_register(&state_->vfs, 0) == SQLITE_OK, "the file system is registered");
}

SimDisk::~SimDisk() { sqlite3_vfs_unregister(&state_->vfs); }

const std::string& SimDisk::vfs() const { return state_->name; }

std::uint64_t SimDisk::operations() const {
  const std::lock_guard lock(state_->mutex);
  return state_->operations;
}

void SimDisk::fail_from(std::uint64_t operation, Fault fault) {
  const std::lock_guard lock(state_->mutex);
  state_->fault_at = operation;
  state_->fault = fault;
  state_->struck = false;
}

void SimDisk::heal() {
  const std::lock_guard lock(state_->mutex);
  state_->fault_at = UINT64_MAX;
}

bool SimDisk::struck() const {
  const std::lock_guard lock(state_->mutex);
  return state_->struck;
}

bool SimDisk::dead() const {
  const std::lock_guard lock(state_->mutex);
  return state_->dead;
}

void SimDisk::crash() {
  const std::lock_guard lock(state_->mutex);
  ++state_->generation;
  state_->dead = state_->struck = false;
  state_->fault_at = UINT64_MAX;
}

void SimDisk::power_cut() {
  crash();
  const std::lock_guard lock(state_->mutex);
  Random& random = state_->random;
  // Often all or nothing of what was on its way arrives; in between is where things go wrong.
  constexpr unsigned kKept[] = {0, 100, 50, 90, 10};
  const unsigned kept = kKept[random.below(std::size(kKept))];
  for (const auto& [name, file] : state_->cached) {
    const auto on_disk = state_->durable.find(name);
    const bool same = on_disk != state_->durable.end() && on_disk->second == file;
    if (!same && random.chance(kept)) state_->durable[name] = file;
  }
  std::erase_if(state_->durable, [&](const auto& entry) {
    return !state_->cached.contains(entry.first) && random.chance(kept);
  });
  for (auto& [name, file] : state_->durable) {
    for (const Change& change : file->unsynced) apply_torn(file->durable, change, random, kept);
    file->unsynced.clear();
    file->cached = file->durable;
  }
  state_->cached = state_->durable;
}

void SimDisk::sync_folder() {
  const std::lock_guard lock(state_->mutex);
  if (!state_->dead) state_->sync_folder();
}

void SimDisk::ignore_syncs(bool on) {
  const std::lock_guard lock(state_->mutex);
  state_->lies = on;
}

std::string SimDisk::contents(const std::string& path) const {
  const std::lock_guard lock(state_->mutex);
  const auto found = state_->cached.find(path);
  return found == state_->cached.end() ? "" : found->second->cached;
}

void SimDisk::set_contents(const std::string& path, std::string bytes) {
  const std::lock_guard lock(state_->mutex);
  auto file = std::make_shared<File>();
  file->cached = file->durable = std::move(bytes);
  state_->cached[path] = state_->durable[path] = std::move(file);
}

bool SimDisk::exists(const std::string& path) const {
  const std::lock_guard lock(state_->mutex);
  return state_->cached.contains(path);
}

}  // namespace skiff::env::testing
