// SQLite with owners and Results: the only door to it for store/ and metadata/.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace skiff::env::posix::sqlite {

// What went wrong, in the words a caller needs to decide; everything else is kOther.
// kSync: the system could not put on the disk what it had taken (fsync failed).
enum class Problem { kNone, kBusy, kFull, kIo, kSync, kDamaged, kOther };

// One prepared statement. Must not outlive its Database.
class Statement {
 public:
  // Parameters count from 1, columns from 0, as in SQLite. Texts and blobs are not copied: they
  // must live until the statement is reset.
  void bind(int parameter, std::int64_t value);
  void bind(int parameter, std::string_view text);
  void bind_blob(int parameter, std::string_view bytes);

  // True: there is a row. False: done.
  Result<bool> step();
  // Steps to the end and resets, for statements that give no rows.
  Result<void> run();
  void reset();

  std::int64_t integer(int column) const;
  // Valid until the next step() or reset().
  std::string_view text(int column) const;

 private:
  friend class Database;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  explicit Statement(sqlite3_stmt* statement) : statement_(statement) {}

  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

// One connection, used by one thread at a time. Errors are kServiceUnavailable with SQLite's own
// words; problem() tells their class.
class Database {
 public:
  enum class Mode { kReadWrite, kReadWriteCreate };
  // `vfs` names the file system as SQLite knows it; empty is the machine's own.
  static Result<Database> open(const std::string& path, Mode mode, const std::string& vfs = {});

  // One or more statements whose rows nobody wants.
  Result<void> execute(const char* sql);
  Result<Statement> prepare(std::string_view sql);
  // The first column of the first row; nothing of it where there is no row is an error.
  Result<std::int64_t> integer(std::string_view sql);
  Result<std::string> text(std::string_view sql);

  // Of the last call that failed or succeeded.
  Problem problem() const;
  bool in_transaction() const;
  // Whether closing the last connection folds the write-ahead log into the file. Off where the
  // file must stay as it was found.
  void checkpoint_on_close(bool on);
  // Pages in the write-ahead log after the last commit.
  int wal_pages() const { return *wal_pages_; }
  // Switches SQLite's own checkpoints off and starts counting wal_pages().
  void manage_checkpoints();

 private:
  struct Close {
    void operator()(sqlite3* db) const;
  };
  explicit Database(sqlite3* db) : db_(db), wal_pages_(std::make_unique<int>(0)) {}

  std::unique_ptr<sqlite3, Close> db_;
  std::unique_ptr<int> wal_pages_;  // at a fixed address: SQLite's hook writes it
};

}  // namespace skiff::env::posix::sqlite
