// One object at one revision.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/json.h"
#include "store/text.h"

namespace skiff::store {

class Dictionary;
class Packer;

using Revision = std::uint64_t;

struct Key {
  std::string resource = {};  // "pods", "tfjobs.kubeflow.org": plural, then group
  std::string ns = {};        // empty for cluster-scoped kinds
  std::string name = {};

  auto operator<=>(const Key&) const = default;
};

// What it says never changes; how it keeps that does. metadata.resourceVersion inside is its
// revision.
class Entry {
 public:
  Entry(Key key, Revision revision, std::string_view bytes);
  ~Entry();
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;

  const Key& key() const { return key_; }
  Revision revision() const { return revision_; }
  // The object as JSON. Unpacked for the caller where it is packed: ask once.
  Text text() const;
  // As text() says, but without unpacking what begins as all of its kind do.
  bool starts_with(std::string_view head) const;
  std::size_t size() const { return size_; }  // of the text
  // Parsed once for all who hold it at the same time; freed when the last of them lets go. So hold
  // the Object as long as anything that points into it.
  Object value() const;

  // Keeps the text in less room, and in any case no longer where new texts are (text.h). At any
  // time, whoever reads it meanwhile; but one thread at a time. Without a packer it stays plain.
  // Returns what it takes then.
  std::size_t pack(Packer* packer) const;
  bool packed() const;

 private:
  friend class Store;
  struct Stored {
    std::shared_ptr<const char> data = {};
    std::shared_ptr<const Dictionary> dictionary = {};  // null: plain
    std::uint32_t size = 0;                             // of what is in `data`
    bool same_head = false;                             // begins with the dictionary's head
  };
  Stored stored() const;
  void forget_value() const;

  const Key key_;
  const Revision revision_;
  const std::uint32_t size_;
  mutable std::atomic_flag moving_ = {};  // guards stored_; held for a few instructions only
  mutable std::atomic_flag parsing_ = {};
  mutable Stored stored_;
  mutable std::weak_ptr<const json::value> value_ = {};
};
using EntryPtr = std::shared_ptr<const Entry>;

}  // namespace skiff::store
