// A directory for one test, gone with it.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/check.h"

namespace skiff::store {

class TestDirectory {
 public:
  explicit TestDirectory(
      const std::filesystem::path& parent = std::filesystem::temp_directory_path())
      : path_(parent / "skiff_store_XXXXXX") {
    SKIFF_CHECK(mkdtemp(path_.data()) != nullptr, "tests may write to the temporary directory");
  }
  ~TestDirectory() {
    std::error_code ignored;  // a leftover in the temporary directory fails no test
    std::filesystem::remove_all(path_, ignored);
  }
  TestDirectory(const TestDirectory&) = delete;
  TestDirectory& operator=(const TestDirectory&) = delete;

  // Where a sync costs nothing, for tests that open files hundreds of times.
  static std::filesystem::path in_memory() {
    const bool there = access("/dev/shm", W_OK) == 0;
    return there ? std::filesystem::path("/dev/shm") : std::filesystem::temp_directory_path();
  }

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace skiff::store
