#include "store/memory_journal.h"

#include <map>
#include <mutex>

#include "store/journal.h"

namespace skiff::store {

struct MemoryDisk::State {
  struct Image {
    std::map<Key, EntryPtr> rows = {};
    Revision last = 0;

    void apply(const std::vector<Journal::Row>& changes, Revision revision) {
      for (const Journal::Row& row : changes) {
        if (row.entry == nullptr) {
          rows.erase(row.key);
        } else {
          rows[row.key] = row.entry;
        }
      }
      last = revision;
    }
  };
  struct Write {
    std::vector<Journal::Row> rows;
    Revision last;
  };

  mutable std::mutex mutex;
  std::uint64_t generation = 0;  // of the journal that may write
  Image written;                 // what the operating system has
  Image synced;                  // what the disk has
  std::vector<Write> unsynced;   // the way from one to the other
  std::string failing;
  std::uint64_t writes = 0;
  std::uint64_t syncs = 0;
};

class MemoryJournal final : public Journal {
 public:
  explicit MemoryJournal(std::shared_ptr<MemoryDisk> disk) : disk_(std::move(disk)) {
    const std::lock_guard lock(disk_->state_->mutex);
    generation_ = ++disk_->state_->generation;
  }

  Result<Loaded> load() override {
    const MemoryDisk::State& state = *disk_->state_;
    const std::lock_guard lock(state.mutex);
    Loaded loaded{.revision = state.written.last};
    for (const auto& [key, entry] : state.written.rows) {
      // Bytes only, as from a real disk: nothing parsed survives in the entry.
      loaded.entries.push_back(
          std::make_shared<const Entry>(key, entry->revision(), entry->text().view()));
    }
    return loaded;
  }

  Result<void> write(const std::vector<Row>& rows, Revision last, Sync sync) override {
    MemoryDisk::State& state = *disk_->state_;
    const std::lock_guard lock(state.mutex);
    if (generation_ != state.generation) {
      return fail(Code::kServiceUnavailable, "the process that opened this disk is dead");
    }
    if (!state.failing.empty()) return fail(Code::kServiceUnavailable, state.failing);
    ++state.writes;
    state.written.apply(rows, last);
    state.unsynced.push_back({rows, last});
    if (sync == Sync::kSynced) {
      ++state.syncs;
      for (const auto& write : state.unsynced) state.synced.apply(write.rows, write.last);
      state.unsynced.clear();
    }
    return {};
  }

 private:
  const std::shared_ptr<MemoryDisk> disk_;
  std::uint64_t generation_ = 0;
};

MemoryDisk::MemoryDisk() : state_(std::make_unique<State>()) {}
MemoryDisk::~MemoryDisk() = default;

void MemoryDisk::fail(std::string reason) {
  const std::lock_guard lock(state_->mutex);
  state_->failing = std::move(reason);
}

void MemoryDisk::heal() { fail({}); }

void MemoryDisk::crash() {
  const std::lock_guard lock(state_->mutex);
  ++state_->generation;
}

void MemoryDisk::power_cut() {
  const std::lock_guard lock(state_->mutex);
  ++state_->generation;
  state_->unsynced.clear();
  state_->synced.last += kLostRevisions;
  state_->written = state_->synced;
}

MemoryDisk::Stats MemoryDisk::stats() const {
  const std::lock_guard lock(state_->mutex);
  return {.objects = state_->written.rows.size(),
          .writes = state_->writes,
          .syncs = state_->syncs,
          .last = state_->written.last,
          .synced = state_->synced.last};
}

std::unique_ptr<Journal> open_memory_journal(std::shared_ptr<MemoryDisk> disk) {
  return std::make_unique<MemoryJournal>(std::move(disk));
}

}  // namespace skiff::store
