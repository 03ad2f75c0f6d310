#include "env/posix/sqlite.h"

#include <gtest/gtest.h>

namespace skiff::env::posix::sqlite {
namespace {

Database memory() {
  return std::move(*Database::open(":memory:", Database::Mode::kReadWriteCreate));
}

TEST(Sqlite, WhatIsBoundComesBackAsItWas) {
  Database db = memory();
  ASSERT_TRUE(db.execute("CREATE TABLE t(a INTEGER, b TEXT, c BLOB)"));
  const std::string blob("\0with\0zeros", 11);
  auto insert = db.prepare("INSERT INTO t VALUES(?, ?, ?)");
  ASSERT_TRUE(insert);
  insert->bind(1, std::int64_t{1} << 62);
  insert->bind(2, std::string_view());
  insert->bind_blob(3, blob);
  ASSERT_TRUE(insert->run());

  auto select = db.prepare("SELECT a, b, c, b IS NULL FROM t");
  ASSERT_TRUE(select);
  auto row = select->step();
  ASSERT_TRUE(row && *row);
  EXPECT_EQ(select->integer(0), std::int64_t{1} << 62);
  EXPECT_EQ(select->text(1), "");
  EXPECT_EQ(select->text(2), blob);
  EXPECT_EQ(select->integer(3), 0) << "an empty text is not NULL";
  row = select->step();
  EXPECT_TRUE(row && !*row) << "there is one row only";
}

TEST(Sqlite, ErrorsCarrySqlitesOwnWords) {
  Database db = memory();
  const auto result = db.execute("SELECT * FROM nowhere");
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().message.find("no such table: nowhere"), std::string::npos);
  EXPECT_EQ(db.problem(), Problem::kOther);
  EXPECT_EQ(db.integer("SELECT 1 WHERE 0").error().code, Code::kNotFound);
}

TEST(Sqlite, AFileThatCannotBeOpenedIsNamed) {
  const auto db = Database::open("/nonexistent/dir/x.db", Database::Mode::kReadWriteCreate);
  ASSERT_FALSE(db);
  EXPECT_NE(db.error().message.find("/nonexistent/dir/x.db"), std::string::npos);
}

}  // namespace
}  // namespace skiff::env::posix::sqlite
