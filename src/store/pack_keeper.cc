#include "store/pack_keeper.h"

#include <algorithm>

namespace skiff::store {
namespace {

constexpr std::size_t kSamples = 8;
// A dictionary with which more than this part remains was made of the wrong objects.
constexpr std::size_t kPoor = 4;
constexpr std::size_t kFirstRenewal = 512;

}  // namespace

bool PackKeeper::pack(const std::string& resource, const std::vector<EntryPtr>& entries) {
  Kind& kind = kinds_[resource];
  kind.seen += entries.size();
  const bool another = wants_another(kind);
  // A better one than there is takes a few to be made of.
  const bool better = another && (kind.dictionary == nullptr || entries.size() >= kSamples);
  if (kind.dictionary == nullptr || better) renew(kind, entries);
  if (kind.dictionary == nullptr) {
    for (const EntryPtr& entry : entries) entry->pack(nullptr);
    return false;
  }
  Packer packer(kind.dictionary);
  for (const EntryPtr& entry : entries) {
    kind.plain_bytes += entry->size();
    kind.packed_bytes += entry->pack(&packer);
  }
  return better;
}

bool PackKeeper::wants_another(const Kind& kind) {
  if (kind.dictionary == nullptr) return kind.seen >= kFirst;
  return kind.seen >= kind.renew_at && kind.packed_bytes > kind.plain_bytes / kPoor;
}

void PackKeeper::renew(Kind& kind, const std::vector<EntryPtr>& entries) {
  // From all over them: neighbours resemble each other more than they do the rest.
  const std::size_t step = std::max<std::size_t>(1, (entries.size() + kSamples - 1) / kSamples);
  for (std::size_t i = 0; i < entries.size(); i += step) kind.samples.push_back(entries[i]);
  while (kind.samples.size() > kSamples) kind.samples.pop_front();
  if (!wants_another(kind)) return;
  std::vector<Text> texts;
  for (const EntryPtr& entry : kind.samples) texts.push_back(entry->text());
  std::vector<std::string_view> views;
  for (const Text& text : texts) views.push_back(text.view());
  kind = {.dictionary = std::make_shared<const Dictionary>(views),
          .seen = kind.seen,
          // So many times only as the number of objects can be doubled.
          .renew_at = std::max(kFirstRenewal, kind.seen * 2)};
}

}  // namespace skiff::store
