// The data folder: its lock, its layout, and small files that must never be half written.
#pragma once

#include <string>

#include "base/result.h"

namespace skiff::assembly {

class DataFolder {
 public:
  // Makes the folder (mode 0700) and takes its lock; the error names the process that holds it. A
  // folder with other things in it is refused: --purge would take them along.
  static Result<DataFolder> open(const std::string& path);
  ~DataFolder();
  DataFolder(DataFolder&& other) noexcept;
  DataFolder& operator=(DataFolder&&) = delete;

  const std::string& path() const { return path_; }
  std::string at(const std::string& name) const { return path_ + "/" + name; }

 private:
  DataFolder(std::string path, int lock) : path_(std::move(path)), lock_(lock) {}

  std::string path_;
  int lock_ = -1;
};

Result<std::string> read_file(const std::string& path);
// Whole or not at all, also after a power cut.
Result<void> write_file(const std::string& path, const std::string& text, int mode);

}  // namespace skiff::assembly
