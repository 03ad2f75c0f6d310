// Small texts that resemble each other, made much smaller: compressed against a dictionary of a few
// of their kind. A pod is a thirtieth of its size then, an event a seventh.
#pragma once

#include <zstd.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace skiff::store {

// What texts of one kind have in common. Immutable, so that any thread may unpack; kept by every
// entry that was packed with it.
class Dictionary {
 public:
  explicit Dictionary(const std::vector<std::string_view>& samples);

  // Writes the text's `size` bytes to `out`.
  void unpack(std::string_view packed, char* out, std::size_t size) const;

  const std::string& content() const { return content_; }
  // What all samples begin with.
  std::string_view head() const { return head_; }

 private:
  struct Free {
    void operator()(ZSTD_DDict* dictionary) const { ZSTD_freeDDict(dictionary); }
  };
  const std::string content_;
  const std::string head_;
  const std::unique_ptr<ZSTD_DDict, Free> ready_;
};

// Packs with one dictionary. What it needs for that is large, so it is made for many texts and let
// go after them. For one thread.
class Packer {
 public:
  explicit Packer(std::shared_ptr<const Dictionary> dictionary);

  // Until the next call.
  std::string_view pack(std::string_view text);
  const std::shared_ptr<const Dictionary>& dictionary() const { return dictionary_; }

 private:
  struct Free {
    void operator()(ZSTD_CDict* dictionary) const { ZSTD_freeCDict(dictionary); }
    void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  };
  const std::shared_ptr<const Dictionary> dictionary_;
  const std::unique_ptr<ZSTD_CDict, Free> ready_;
  const std::unique_ptr<ZSTD_CCtx, Free> context_;
  std::string room_ = {};
};

}  // namespace skiff::store
