// A directory for one test, gone with it.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/check.h"

namespace skiff::store {

class TestDirectory {
 public:
  TestDirectory() : path_(std::filesystem::temp_directory_path() / "skiff_store_XXXXXX") {
    SKIFF_CHECK(mkdtemp(path_.data()) != nullptr, "tests may write to the temporary directory");
  }
  ~TestDirectory() {
    std::error_code ignored;  // a leftover in the temporary directory fails no test
    std::filesystem::remove_all(path_, ignored);
  }
  TestDirectory(const TestDirectory&) = delete;
  TestDirectory& operator=(const TestDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace skiff::store
