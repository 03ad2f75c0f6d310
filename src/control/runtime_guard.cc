// What the runtime does when a controller throws about one object.
#include <fmt/format.h>

#include "api/meta.h"
#include "control/runtime.h"

namespace skiff::control {
namespace {

Note note_of(const Error& error) {
  return {.warning = true, .reason = "PlanFailed", .message = error.message};
}

}  // namespace

void Runtime::broken(std::size_t index, const Key& key, Item& item, const Object& about,
                     const Error& error) {
  const Member& member = *members_[index];
  // What a global controller threw about is not known: it looks at everything at once.
  if (about != nullptr) events_.record(about, member.keyed->name, note_of(error));
  failed(index, key, item, error);
}

void Runtime::complain(const Member& member, const Object& about, const Error& error) {
  const std::string& name = member.keyed ? member.keyed->name : member.global->name;
  if (about == nullptr) return options_.log(fmt::format("{}: {}", name, error.message));
  options_.log(
      fmt::format("{}: {}/{}: {}", name, api::ns(*about), api::name(*about), error.message));
  events_.record(about, name, note_of(error));
}

}  // namespace skiff::control
