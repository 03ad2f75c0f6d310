// Names of images: registry, repository, tag and digest, with Docker's defaults. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace skiff::image {

struct Reference {
  std::string registry = {};    // docker.io, localhost:5000
  std::string repository = {};  // library/busybox
  std::string tag = {};         // empty only where there is a digest
  std::string digest = {};      // sha256:...; it counts more than the tag

  std::string name() const { return registry + "/" + repository; }
  // The whole name, by which the store knows it: a digest takes the place of the tag.
  std::string text() const;

  bool operator==(const Reference&) const = default;
};

// busybox, ghcr.io/me/app:v1, localhost:5000/a/b@sha256:...; without tag and digest: latest.
Result<Reference> parse_reference(std::string_view text);

// "sha256:" and 64 hexadecimal digits. Nothing else is believed anywhere in this folder.
bool is_digest(std::string_view text);
// The digits alone: a name for files.
std::string_view digest_hex(std::string_view digest);

struct RegistryAddress {
  std::string host = {};
  int port = 443;
  bool tls = true;  // not on this machine itself, where nobody listens in
};
Result<RegistryAddress> registry_address(std::string_view registry);

}  // namespace skiff::image
