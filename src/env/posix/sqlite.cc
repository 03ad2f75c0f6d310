#include "env/posix/sqlite.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include "base/check.h"

namespace skiff::env::posix::sqlite {
namespace {

std::unexpected<Error> failure(sqlite3* db) {
  return fail(Code::kServiceUnavailable, fmt::format("SQLite: {} (code {})", sqlite3_errmsg(db),
                                                     sqlite3_extended_errcode(db)));
}

// A wrong parameter number or a statement in use is a bug of the caller, not of the world.
void check_bound(int code) { SKIFF_CHECK(code == SQLITE_OK, sqlite3_errstr(code)); }

// SQLite takes a null pointer for NULL, but an empty view may well hold one.
const char* data_of(std::string_view bytes) { return bytes.data() == nullptr ? "" : bytes.data(); }

}  // namespace

void Statement::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

void Statement::bind(int parameter, std::int64_t value) {
  check_bound(sqlite3_bind_int64(statement_.get(), parameter, value));
}

void Statement::bind(int parameter, std::string_view text) {
  check_bound(sqlite3_bind_text64(statement_.get(), parameter, data_of(text), text.size(),
                                  SQLITE_STATIC, SQLITE_UTF8));
}

void Statement::bind_blob(int parameter, std::string_view bytes) {
  check_bound(sqlite3_bind_blob64(statement_.get(), parameter, data_of(bytes), bytes.size(),
                                  SQLITE_STATIC));
}

Result<bool> Statement::step() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return failure(sqlite3_db_handle(statement_.get()));
}

Result<void> Statement::run() {
  Result<void> result = {};
  while (true) {
    Result<bool> more = step();
    if (!more) result = std::unexpected(std::move(more).error());
    if (!more || !*more) break;
  }
  reset();
  return result;
}

void Statement::reset() {
  // The code repeats the error of the last step(), which has been told already.
  sqlite3_reset(statement_.get());
  sqlite3_clear_bindings(statement_.get());
}

std::int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

std::string_view Statement::text(int column) const {
  const void* bytes = sqlite3_column_blob(statement_.get(), column);
  const int size = sqlite3_column_bytes(statement_.get(), column);
  if (bytes == nullptr || size <= 0) return {};
  return {static_cast<const char*>(bytes), static_cast<std::size_t>(size)};
}

void Database::Close::operator()(sqlite3* db) const { sqlite3_close_v2(db); }

Result<Database> Database::open(const std::string& path, Mode mode, const std::string& vfs) {
  int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  if (mode == Mode::kReadWriteCreate) flags |= SQLITE_OPEN_CREATE;
  sqlite3* handle = nullptr;
  const int code =
      sqlite3_open_v2(path.c_str(), &handle, flags, vfs.empty() ? nullptr : vfs.c_str());
  Database db(handle);  // SQLite gives a handle, which must be closed, even where opening fails
  if (code != SQLITE_OK) {
    return fail(Code::kServiceUnavailable,
                fmt::format("cannot open {}: {}", path,
                            handle == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(handle)));
  }
  return db;
}

Result<void> Database::execute(const char* sql) {
  if (sqlite3_exec(db_.get(), sql, nullptr, nullptr, nullptr) != SQLITE_OK) {
    return failure(db_.get());
  }
  return {};
}

Result<Statement> Database::prepare(std::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v3(db_.get(), sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  if (code != SQLITE_OK) return failure(db_.get());
  return Statement(statement);
}

Result<std::int64_t> Database::integer(std::string_view sql) {
  SKIFF_ASSIGN(Statement statement, prepare(sql));
  SKIFF_ASSIGN(const bool row, statement.step());
  if (!row) return fail(Code::kNotFound, fmt::format("no row for: {}", sql));
  return statement.integer(0);
}

Result<std::string> Database::text(std::string_view sql) {
  SKIFF_ASSIGN(Statement statement, prepare(sql));
  SKIFF_ASSIGN(const bool row, statement.step());
  if (!row) return fail(Code::kNotFound, fmt::format("no row for: {}", sql));
  return std::string(statement.text(0));
}

Problem Database::problem() const {
  const int extended = sqlite3_extended_errcode(db_.get());
  if (extended == SQLITE_IOERR_FSYNC || extended == SQLITE_IOERR_DIR_FSYNC) return Problem::kSync;
  switch (sqlite3_errcode(db_.get()) & 0xff) {
    case SQLITE_OK:
    case SQLITE_ROW:
    case SQLITE_DONE:
      return Problem::kNone;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return Problem::kBusy;
    case SQLITE_FULL:
      return Problem::kFull;
    case SQLITE_IOERR:
      return Problem::kIo;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return Problem::kDamaged;
    default:
      return Problem::kOther;
  }
}

bool Database::in_transaction() const { return sqlite3_get_autocommit(db_.get()) == 0; }

void Database::checkpoint_on_close(bool on) {
  const int off = on ? 0 : 1;
  sqlite3_db_config(db_.get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, off, nullptr);
}

void Database::manage_checkpoints() {
  // Setting a hook of our own takes the place of the automatic checkpoint, which is one too.
  sqlite3_wal_hook(
      db_.get(),
      [](void* pages, sqlite3*, const char*, int count) {
        *static_cast<int*>(pages) = count;
        return SQLITE_OK;
      },
      wal_pages_.get());
}

}  // namespace skiff::env::posix::sqlite
