#include "node/image.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/meta.h"

namespace skiff::node {
namespace {

bool glob(std::string_view pattern, std::string_view text) {
  // The last star seen, and how much of the text it has taken: enough to step back once.
  std::size_t p = 0, t = 0, star = std::string_view::npos, taken = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++taken;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

// The reference without :tag and @digest. The colon of a registry's port comes before a slash.
std::string_view repository(std::string_view image) {
  image = image.substr(0, image.find('@'));
  const std::size_t colon = image.rfind(':');
  const std::size_t slash = image.rfind('/');
  if (colon == std::string_view::npos) return image;
  if (slash != std::string_view::npos && colon < slash) return image;
  return image.substr(0, colon);
}

std::size_t plain_characters(std::string_view pattern) {
  return pattern.size() -
         static_cast<std::size_t>(std::count_if(pattern.begin(), pattern.end(),
                                                [](char c) { return c == '*' || c == '?'; }));
}

ResolvedImage from_mapping(const json::value& mapping) {
  const json::value& spec = *json::find(mapping, {"spec"});
  ResolvedImage out;
  out.rootfs = json::get_string(spec, {"rootfs"});
  out.venv = json::get_string(spec, {"venv"});
  out.host = out.rootfs.empty();
  out.entrypoint = json::strings(json::get_array(spec, {"entrypoint"}));
  out.args = json::strings(json::get_array(spec, {"args"}));
  out.working_dir = json::get_string(spec, {"workingDir"});
  for (const json::value& entry : json::get_array(spec, {"env"})) {
    out.env.emplace_back(json::get_string(entry, {"name"}), json::get_string(entry, {"value"}));
  }
  for (const json::value& mount : json::get_array(spec, {"mounts"})) {
    out.mounts.push_back({.source = std::string(json::get_string(mount, {"source"})),
                          .target = std::string(json::get_string(mount, {"target"})),
                          .read_only = json::get_bool(mount, {"readOnly"}).value_or(false)});
  }
  return out;
}

}  // namespace

bool image_matches(std::string_view pattern, std::string_view image) {
  return glob(pattern, image) || glob(pattern, repository(image));
}

std::expected<ResolvedImage, Refusal> resolve_image(std::string_view image,
                                                    const std::vector<Object>& mappings,
                                                    bool host_for_all) {
  const json::value* best = nullptr;
  std::size_t best_plain = 0;
  for (const Object& mapping : mappings) {
    const std::string_view pattern = json::get_string(*mapping, {"spec", "pattern"});
    if (pattern.empty() || !image_matches(pattern, image)) continue;
    const std::size_t plain = plain_characters(pattern);
    const bool better = best == nullptr || plain > best_plain ||
                        (plain == best_plain && api::name(*mapping) < api::name(*best));
    if (!better) continue;
    best = mapping.get();
    best_plain = plain;
  }
  if (best != nullptr) return from_mapping(*best);
  if (host_for_all) return ResolvedImage{};
  return std::unexpected(Refusal{
      "ErrImagePull",
      fmt::format("image \"{0}\" is not mapped to anything on this machine. Run the pod on this "
                  "machine's own programs with: skiff image map {0} --host; or start Skiff with: "
                  "skiff up --images=host. To pull images, Skiff must run as root",
                  image)});
}

ResolvedImage from_store(const image::Image& image, image::Accounts accounts) {
  return {.host = false,
          .entrypoint = image.config.entrypoint,
          .args = image.config.cmd,
          .working_dir = image.config.working_dir,
          .env = image.config.env,
          .stored = image.stored,
          .accounts = std::move(accounts),
          .user = image.config.user};
}

std::string image_id(const image::StoredImage& image) {
  const std::size_t at = image.name.find('@');
  const std::size_t tag = image.name.rfind(':');
  const std::size_t end = at != std::string::npos ? at : tag;
  return fmt::format("{}@{}", std::string_view(image.name).substr(0, end), image.target);
}

std::expected<std::vector<std::string>, Refusal> command_line(const json::value& container,
                                                              const ResolvedImage& image,
                                                              const Variables& variables) {
  const json::array& command = json::get_array(container, {"command"});
  const json::array& args = json::get_array(container, {"args"});
  const auto refused = [](const Error& error) {
    return std::unexpected(Refusal{"CreateContainerConfigError", error.message});
  };
  Result<std::vector<std::string>> own = expand_all(command, variables);
  if (!own) return refused(own.error());
  Result<std::vector<std::string>> own_args = expand_all(args, variables);
  if (!own_args) return refused(own_args.error());
  std::vector<std::string> out = command.empty() ? image.entrypoint : std::move(*own);
  // A command of the pod replaces the image's arguments too; so Kubernetes and Docker do it.
  std::vector<std::string> rest =
      args.empty() && command.empty() ? image.args : std::move(*own_args);
  out.insert(out.end(), rest.begin(), rest.end());
  const bool nothing = command.empty() && image.entrypoint.empty();
  // With a root file system of its own the image's args may be the whole command (CMD).
  if (!out.empty() && !(nothing && image.host)) return out;
  if (!image.host) {
    return std::unexpected(
        Refusal{"CreateContainerError",
                fmt::format("no command specified: neither container \"{}\" nor image \"{}\" "
                            "names a program to run",
                            json::get_string(container, {"name"}),
                            json::get_string(container, {"image"}))});
  }
  return std::unexpected(Refusal{
      "CreateContainerError",
      fmt::format("container \"{0}\" gives no command, and image \"{1}\" runs on this machine's "
                  "own programs, where no entrypoint is known. Set command in the container, or "
                  "give the mapping one with: skiff image map {1} --host --entrypoint PROGRAM",
                  json::get_string(container, {"name"}), json::get_string(container, {"image"}))});
}

}  // namespace skiff::node
