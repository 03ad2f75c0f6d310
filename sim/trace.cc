#include "sim/trace.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/meta.h"

namespace skiff::sim {
namespace {

std::string_view word(client::Verb verb) {
  switch (verb) {
    case client::Verb::kCreate:
      return "creates";
    case client::Verb::kUpdate:
      return "updates";
    case client::Verb::kMergePatch:
    case client::Verb::kJsonPatch:
    case client::Verb::kApply:
      return "patches";
    case client::Verb::kDelete:
      return "deletes";
  }
  return "writes";
}

}  // namespace

void Trace::tell(const client::Write& write, const Result<json::value>* answer) const {
  if (!log_ || write.resource.key() == "events") return;
  const std::string_view name =
      write.name.empty() ? api::name(write.body) : std::string_view(write.name);
  std::string result = "no answer";
  if (answer != nullptr) {
    result = *answer ? std::string(api::resource_version(**answer)) : answer->error().message;
  }
  std::string what = json::serialize(write.body);
  if (const json::value* status = json::find(write.body, {"status"})) {
    what = json::serialize(*status);
  }
  log_(fmt::format("{} {} {} {}{}{} {} -> {}", who_, word(write.verb), write.resource.plural, name,
                   write.subresource.empty() ? "" : "/", write.subresource, what.substr(0, 300),
                   result));
}

Result<json::value> Trace::write(const client::Write& write) {
  auto answer = server_().write(write);
  tell(write, &answer);
  return answer;
}

void Trace::submit(std::vector<client::Write> writes, Done done) {
  if (!log_) return server_().submit(std::move(writes), std::move(done));
  server_().submit(writes, [this, writes, done = std::move(done)](auto answers) {
    const bool whole = answers.size() == writes.size();
    for (std::size_t i = 0; i < writes.size(); ++i) {
      tell(writes[i], whole ? &answers[i] : i + 1 == answers.size() ? &answers.back() : nullptr);
    }
    done(std::move(answers));
  });
}

std::string in_short(const std::string& resource, const json::value& object) {
  std::string out =
      fmt::format("{} {} rv={}", resource, api::name(object), api::resource_version(object));
  if (api::deleting(object)) out += " deleting";
  if (const auto node = json::get_string(object, {"spec", "nodeName"}); !node.empty()) {
    out += fmt::format(" on {}", node);
  }
  if (const json::value* status = json::find(object, {"status"})) {
    out += " status=" + json::serialize(*status).substr(0, 600);
  }
  return out;
}

}  // namespace skiff::sim
