// Files of a pod's folder: whole reads, atomic writes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace skiff::node {

// "what: reason", the reason taken from errno.
std::unexpected<Error> os_failure(std::string_view what);

Result<std::string> read_file(const std::string& path);
// For files of the kernel (cgroups, sysctls) and files that nobody reads after a power loss.
Result<void> write_plain(const std::string& path, std::string_view text);
// A reader sees the old file or the new one, also after a power loss.
Result<void> write_atomically(const std::string& folder, const std::string& name,
                              std::string_view text);
// The same, but after a power loss the file may be gone: for what a new start makes void.
Result<void> replace_file(const std::string& folder, const std::string& name,
                          std::string_view text);
// Makes the next write of that file succeed on a disk that is full by then, if it is no longer than
// `bytes`; best effort.
void keep_room(const std::string& folder, const std::string& name, std::int64_t bytes);
Result<void> make_folders(const std::string& path);
void remove_tree(const std::string& path);
// False where the other side is gone.
bool write_all(int fd, std::string_view text);
// Differs after every start of the machine.
std::string boot_id();

}  // namespace skiff::node
