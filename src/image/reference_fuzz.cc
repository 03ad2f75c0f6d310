// Names of images, and what registries send about them and ask for.
#include "base/fuzz.h"
#include "image/auth.h"
#include "image/manifest.h"
#include "image/reference.h"
#include "image/user.h"

SKIFF_FUZZ(text) {
  using namespace skiff;
  using namespace skiff::image;
  if (const auto reference = parse_reference(text)) {
    const auto again = parse_reference(reference->text());
    SKIFF_CHECK(again && again->text() == reference->text(), "a whole name means itself");
    SKIFF_CHECK(reference->repository.find("..") == std::string::npos, "it becomes part of paths");
    SKIFF_CHECK(registry_address(reference->registry).has_value(), "somebody can be asked");
  }
  (void)parse_challenge(text);
  (void)find_user({.passwd = std::string(text), .group = std::string(text)}, "a:b");
  (void)parse_config(text);
  const auto document = json::parse(text);
  if (!document) return;
  (void)is_index(*document);
  (void)choose_platform(*document, this_platform());
  if (const auto manifest = parse_manifest(*document)) {
    SKIFF_CHECK(is_digest(manifest->config.digest), "digests name files");
    for (const Descriptor& layer : manifest->layers)
      SKIFF_CHECK(is_digest(layer.digest), "here too");
  }
  Keyring keyring;
  keyring.add(*document);
  (void)keyring.lookup(*parse_reference("a.b.io/c/d"));
}
