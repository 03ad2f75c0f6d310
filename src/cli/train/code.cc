#include "cli/train/code.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/base64.h"

namespace skiff::cli {
namespace {

namespace fs = std::filesystem;

std::string mib(std::size_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1024 * 1024));
}

Error too_large(std::string_view what) {
  return {.code = Code::kBadRequest,
          .message = fmt::format(
              "{}: a copy of the code may have {} in all, {} in one file and {} files. Keep data "
              "out of the folder of the script, or give it to the job with --dataset or --claim",
              what, mib(kCodeMapBytes * kCodeMaps), mib(kCodeMapBytes), kCodeFiles)};
}

Error unreadable(const fs::path& path, const std::string& why) {
  return {.code = Code::kBadRequest, .message = fmt::format("{}: {}", path.native(), why)};
}

// What a link leads to is a file of this folder.
bool stays_inside(const fs::path& link, const fs::path& folder) {
  std::error_code error;
  const fs::path target = fs::canonical(link, error);
  if (error || !fs::is_regular_file(target, error)) return false;
  const fs::path inside = target.lexically_relative(folder);
  return !inside.empty() && *inside.begin() != "..";
}

}  // namespace

bool belongs_to_code(std::string_view name) {
  return !name.starts_with('.') && name != "__pycache__" && !name.ends_with(".pyc") &&
         name != "node_modules";
}

Result<CodeFolder> read_code(const std::string& folder) {
  CodeFolder out;
  std::error_code error;
  const fs::path root = fs::canonical(folder, error);
  if (error) return std::unexpected(unreadable(folder, error.message()));
  std::size_t bytes = 0;
  fs::recursive_directory_iterator it(root, error);
  for (const fs::recursive_directory_iterator end = {}; !error && it != end; it.increment(error)) {
    const fs::path& path = it->path();
    if (!belongs_to_code(path.filename().native())) {
      it.disable_recursion_pending();
      continue;
    }
    const std::string name = path.lexically_relative(root);
    std::error_code failed;  // of this file: the iterator's own is that of the walk
    if (it->is_symlink(failed) && !stays_inside(path, root)) {
      out.left_out.push_back(name);
      continue;
    }
    if (!it->is_regular_file(failed)) continue;
    const std::size_t size = it->file_size(failed);
    if (failed) return std::unexpected(unreadable(path, failed.message()));
    bytes += size;
    if (size > kCodeMapBytes) {
      return std::unexpected(too_large(fmt::format("{} has {}", name, mib(size))));
    }
    if (bytes > kCodeMapBytes * kCodeMaps) {
      return std::unexpected(too_large(
          fmt::format("the first {} files have {} already", out.files.size() + 1, mib(bytes))));
    }
    std::ifstream in(path, std::ios::binary);
    if (!in) return std::unexpected(unreadable(path, "it cannot be read"));
    out.files.push_back(
        {.path = name,
         .bytes = {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()}});
    if (out.files.size() > kCodeFiles) break;  // enough to say so
  }
  if (error) return std::unexpected(unreadable(root, error.message()));
  return out;
}

Result<std::vector<CodeMap>> pack_code(const std::vector<CodeFile>& files) {
  if (files.size() > kCodeFiles) {
    return std::unexpected(too_large(fmt::format("{} files", files.size())));
  }
  std::vector<CodeMap> out(1);
  std::size_t used = 0, all = 0, number = 0;
  for (const CodeFile& file : files) {
    const std::size_t bytes = file.bytes.size() + file.path.size() + 64;
    all += bytes;
    if (bytes > kCodeMapBytes) {
      return std::unexpected(too_large(fmt::format("{} has {}", file.path, mib(bytes))));
    }
    if (used + bytes > kCodeMapBytes) {
      out.emplace_back();
      used = 0;
    }
    used += bytes;
    const std::string key = fmt::format("f{}", number++);
    out.back().binary_data[key] = base64::encode(file.bytes);
    out.back().items.emplace_back(key, file.path);
  }
  if (out.size() > kCodeMaps) {
    return std::unexpected(too_large(fmt::format("{} in {} files", mib(all), files.size())));
  }
  return out;
}

json::object code_volume(const std::vector<CodeMap>& maps) {
  json::array sources;
  for (const CodeMap& map : maps) {
    json::array items;
    for (const auto& [key, path] : map.items) {
      items.push_back(json::object{{"key", key}, {"path", path}});
    }
    sources.push_back(
        json::object{{"configMap", {{"name", map.name}, {"items", std::move(items)}}}});
  }
  return {{"name", "code"}, {"projected", {{"sources", std::move(sources)}}}};
}

}  // namespace skiff::cli
