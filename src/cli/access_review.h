// Requests and answers of `skiff auth`: what may I do, and who am I. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "api/kind.h"
#include "base/json.h"

namespace skiff::cli {

struct Question {
  std::string verb = {};
  std::string path = {};  // a path of the server; else a resource:
  std::string group = {};
  std::string resource = {};
  std::string subresource = {};
  std::string name = {};
  std::string ns = {};
};

// VERB and RESOURCE, RESOURCE/NAME or /path as typed. `kind` is what the resource's word means
// where the server knows it.
Question question(std::string_view verb, std::string_view target,
                  const std::optional<api::Kind>& kind, std::string_view subresource,
                  std::string_view ns);
// The word of a target that names a kind; empty for a path.
std::string kind_word(std::string_view target);

json::value access_review(const Question& question);
json::value rules_review(std::string_view ns);

struct Verdict {
  bool allowed = false;
  std::string reason = {};
};
Verdict verdict_of(const json::value& review);

// The tables of kubectl auth can-i --list and auth whoami.
std::string rules_text(const json::value& review);
std::string whoami_text(const json::value& review);

}  // namespace skiff::cli
