#include "store/mark.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/checksum.h"

namespace skiff::store {
namespace {

constexpr std::uint64_t kMagic = 0x6b72616d66696b73;  // "skifmark" in the file

std::uint64_t file_number(const std::string& path) {
  struct stat status{};
  return stat(path.c_str(), &status) == 0 ? status.st_ino : 0;
}

std::uint64_t number_of(std::string_view text) {
  Checksum sum;
  sum.add(text);
  return static_cast<std::uint64_t>(sum.value());
}

}  // namespace

Mark::Mark(const std::string& database, std::string_view boot)
    : database_(database),
      fd_(::open((database + "-mark").c_str(), O_RDWR | O_CLOEXEC)),
      words_{.magic = kMagic, .boot = number_of(boot)} {
  Words words;
  if (fd_ < 0 || pread(fd_, &words, sizeof words, 0) != sizeof words) return;
  if (words.magic == kMagic && words.sum == sum_of(words)) found_ = words;
}

Mark::~Mark() {
  if (fd_ >= 0) close(fd_);
}

std::uint64_t Mark::sum_of(const Words& words) {
  Checksum sum;
  for (const std::uint64_t word : {words.magic, words.file, words.boot, words.last, words.synced}) {
    sum.mix(word);
  }
  return static_cast<std::uint64_t>(sum.value());
}

Revision Mark::least() const {
  if (!found_ || found_->file != file_number(database_)) return 0;
  return found_->boot == words_.boot ? found_->last : found_->synced;
}

void Mark::set(Revision last, Sync sync) {
  if (words_.file == 0) {
    // The first of this process: what earlier ones synced still holds.
    words_.file = file_number(database_);
    if (fd_ < 0) {
      fd_ = ::open((database_ + "-mark").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    }
    if (found_ && found_->file == words_.file) words_.synced = found_->synced;
  }
  words_.last = last;
  if (sync == Sync::kSynced) words_.synced = last;
  words_.sum = sum_of(words_);
  if (fd_ < 0) return;
  // A mark that could not be written is an older one, which asks for less.
  (void)!pwrite(fd_, &words_, sizeof words_, 0);
}

}  // namespace skiff::store
