#include "control/join.h"

#include <algorithm>

#include "api/meta.h"

namespace skiff::control {

Join::Join(Related related) : related_(std::move(related)) {}

std::string Join::place(const json::value& object) const {
  return related_.resource.namespaced ? std::string(api::ns(object)) : std::string();
}

void Join::root_changed(const Object& before, const Object& after) {
  if (before != nullptr) {
    const Key key = key_of(*before);
    if (const auto known = place_of_.find(key); known != place_of_.end()) {
      const auto there = roots_.find(known->second);
      there->second.erase(key);
      if (there->second.empty()) roots_.erase(there);
      place_of_.erase(known);
    }
  }
  if (after == nullptr) return;
  std::vector<std::string> wants = related_.wants(*after);
  if (wants.empty()) return;
  const std::string ns = place(*after);
  const auto crowd = [&](const std::string& text) {
    const auto there = roots_.find({ns, text});
    return there == roots_.end() ? 0 : there->second.size();
  };
  const Word word{ns, *std::ranges::min_element(wants, {}, crowd)};
  const Key key = key_of(*after);
  roots_[word][key] = std::move(wants);
  place_of_[key] = word;
}

void Join::object_changed(const Object& before, const Object& after) {
  std::vector<std::string> had;
  std::vector<std::string> has;
  if (before != nullptr) had = related_.has(*before);
  if (after != nullptr) has = related_.has(*after);
  // Most changes are of a status.
  if (before != nullptr && after != nullptr && had == has) return;
  if (before != nullptr) {
    const Key key = key_of(*before);
    for (std::string& word : had) {
      const auto there = objects_.find({place(*before), std::move(word)});
      if (there == objects_.end()) continue;
      there->second.erase(key);
      if (there->second.empty()) objects_.erase(there);
    }
  }
  if (after == nullptr) return;
  const Key key = key_of(*after);
  for (std::string& word : has) objects_[{place(*after), std::move(word)}].insert(key);
}

std::vector<Key> Join::roots_of(const json::value& object) const {
  std::vector<Key> out;
  std::vector<std::string> words = related_.has(object);
  std::ranges::sort(words);
  words.erase(std::ranges::unique(words).begin(), words.end());
  const std::string ns = place(object);
  for (const std::string& word : words) {
    const auto there = roots_.find({ns, word});
    if (there == roots_.end()) continue;
    for (const auto& [key, wants] : there->second) {
      const auto known = [&](const std::string& w) { return std::ranges::binary_search(words, w); };
      if (std::ranges::all_of(wants, known)) out.push_back(key);
    }
  }
  return out;
}

std::vector<Key> Join::seen_by(const json::value& root) const {
  std::vector<const std::set<Key>*> lists;
  const std::string ns = place(root);
  for (std::string& word : related_.wants(root)) {
    const auto there = objects_.find({ns, std::move(word)});
    if (there == objects_.end()) return {};
    lists.push_back(&there->second);
  }
  if (lists.empty()) return {};
  std::ranges::sort(lists, {}, [](const auto* list) { return list->size(); });
  std::vector<Key> out;
  for (const Key& key : *lists.front()) {
    const auto listed = [&](const auto* list) { return list->contains(key); };
    if (std::ranges::all_of(lists, listed)) out.push_back(key);
  }
  return out;
}

}  // namespace skiff::control
