// A folder of code as ConfigMaps, so that a job sees a copy of it wherever it runs. Pure but for
// read_code.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace skiff::cli {

// A ConfigMap holds a mebibyte at most; what travels beside the files needs some of it. So many of
// them carry one copy.
inline constexpr std::size_t kCodeMapBytes = 1000 * 1024;
inline constexpr std::size_t kCodeMaps = 8;
inline constexpr std::size_t kCodeFiles = 2000;
inline constexpr std::string_view kCodeFolder = "/skiff/code";  // where the job finds it

struct CodeFile {
  std::string path = {};  // below the folder
  std::string bytes = {};
};

// The part of a copy that lies in one ConfigMap.
struct CodeMap {
  std::string name = {};  // once it is made
  json::object binary_data = {};
  std::vector<std::pair<std::string, std::string>> items = {};  // key, path
};

// Whether a file or folder of this name belongs to the code: what is hidden, and what Python leaves
// behind, does not.
bool belongs_to_code(std::string_view name);

struct CodeFolder {
  std::vector<CodeFile> files = {};
  // Links that lead out of the folder, to another folder or to nothing: what they lead to is not
  // part of it, and may be nobody's business.
  std::vector<std::string> left_out = {};
};

// All files below a folder that belong to its code. No more is read than may be copied.
Result<CodeFolder> read_code(const std::string& folder);

// The error says what is too large and what to do.
Result<std::vector<CodeMap>> pack_code(const std::vector<CodeFile>& files);

// The volume that shows all of them as one folder.
json::object code_volume(const std::vector<CodeMap>& maps);

}  // namespace skiff::cli
