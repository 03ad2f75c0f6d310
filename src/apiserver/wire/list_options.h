// The query of a list or a watch (metav1.ListOptions), judged as the real server judges it, and the
// tokens that pages go on by.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/http.h"
#include "base/result.h"

namespace skiff::apiserver {

struct ListOptions {
  std::size_t limit = 0;  // 0: all
  std::string resource_version = {};
  std::string match = {};  // Exact, NotOlderThan or empty
  std::string token = {};  // continue
  std::optional<bool> initial_events = {};
  bool bookmarks = false;
  std::optional<std::int64_t> timeout_s = {};
};

// kBadRequest where something is no number, kInvalid (ListOptions.meta.k8s.io) where options
// contradict each other. A watch from the start asks for initial events, whether it says so or not.
Result<ListOptions> read_list_options(const http::Url& url, bool watch);

// "false" and "0" are false, any other word is true.
bool query_flag(const http::Url& url, std::string_view name);
Result<std::optional<std::int64_t>> query_integer(const http::Url& url, std::string_view name);
// The sentence of Go's strconv about a text that is no number.
std::string not_a_number(std::string_view function, std::string_view text);

// Where a list goes on: after which key, in which snapshot.
struct Continue {
  std::int64_t revision = 0;  // -1: in the newest state, since the snapshot is gone
  std::string ns = {};
  std::string name = {};
};
std::string encode_continue(const Continue& token);
Result<Continue> decode_continue(std::string_view text);

}  // namespace skiff::apiserver
