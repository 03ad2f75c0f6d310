// A kubeconfig: CONTEXT 0xff TEXT. It may name files, so those of the machine are kept out.
#include "base/fuzz.h"
#include "client/remote/access.h"

SKIFF_FUZZ(text) {
  using namespace skiff;
  const std::string_view context = next_part(text);
  for (const std::string_view outside : {"/dev", "/proc", "/sys"}) {
    if (text.contains(outside)) return;
  }
  const auto access = client::parse_kubeconfig(text, "/nonexistent", context);
  if (!access) {
    SKIFF_CHECK(!access.error().message.empty(), "an error says something");
    return;
  }
  (void)access->impersonation();
}
