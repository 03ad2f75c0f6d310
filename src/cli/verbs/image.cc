// skiff image map: says what an image name means on a machine without containers.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "api/meta.h"
#include "base/strings.h"
#include "cli/verbs/verbs.h"

namespace skiff::cli {
namespace {

struct ImageOptions {
  std::string pattern = {};
  bool host = false;
  std::string rootfs = {};
  std::string venv = {};
  std::vector<std::string> entrypoint = {};
  std::vector<std::string> program = {};  // the same, after --
  std::string working_dir = {};
  std::vector<std::string> env = {};
  std::vector<std::string> mounts = {};
  std::string name = {};
};

// Object names may hold less than image names do.
std::string object_name(std::string_view pattern) {
  std::string out;
  for (const char c : lower(pattern)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (plain) {
      out += c;
    } else if (c == '*') {
      out += "any";
    } else if (!out.empty() && out.back() != '-') {
      out += '-';
    }
  }
  while (out.ends_with('-')) out.pop_back();
  return out.empty() ? "all" : out;
}

Result<json::value> mapping(const ImageOptions& options) {
  const int ways =
      (options.host ? 1 : 0) + (options.rootfs.empty() ? 0 : 1) + (options.venv.empty() ? 0 : 1);
  if (ways != 1) {
    return fail(Code::kBadRequest,
                "say what the image is here: one of --host, --venv DIR, --rootfs DIR");
  }
  json::object spec = {{"pattern", options.pattern}};
  if (options.host) spec["host"] = true;
  if (!options.rootfs.empty()) spec["rootfs"] = options.rootfs;
  if (!options.venv.empty()) spec["venv"] = options.venv;
  if (!options.working_dir.empty()) spec["workingDir"] = options.working_dir;
  if (!options.entrypoint.empty() || !options.program.empty()) {
    json::array words;
    for (const std::string& word : options.entrypoint) words.emplace_back(word);
    for (const std::string& word : options.program) words.emplace_back(word);
    spec["entrypoint"] = std::move(words);
  }
  json::array env;
  for (const std::string& pair : options.env) {
    const std::size_t equals = pair.find('=');
    if (equals == std::string::npos || equals == 0) {
      return fail(Code::kBadRequest, fmt::format("--env {}: write NAME=value", pair));
    }
    env.push_back(
        json::object{{"name", pair.substr(0, equals)}, {"value", pair.substr(equals + 1)}});
  }
  if (!env.empty()) spec["env"] = std::move(env);
  json::array mounts;
  for (const std::string& pair : options.mounts) {
    const auto parts = split(pair, ':');
    if (parts.size() < 2 || parts.size() > 3 || (parts.size() == 3 && parts[2] != "ro")) {
      return fail(Code::kBadRequest,
                  fmt::format("--mount {}: write SOURCE:TARGET or SOURCE:TARGET:ro", pair));
    }
    mounts.push_back(json::object{{"source", json::string(parts[0])},
                                  {"target", json::string(parts[1])},
                                  {"readOnly", parts.size() == 3}});
  }
  if (!mounts.empty()) spec["mounts"] = std::move(mounts);
  return json::value{
      {"apiVersion", "skiff.dev/v1"},
      {"kind", "ImageMapping"},
      {"metadata", {{"name", options.name.empty() ? object_name(options.pattern) : options.name}}},
      {"spec", std::move(spec)}};
}

Result<void> run_map(Context& context, const ImageOptions& options) {
  SKIFF_ASSIGN(const json::value object, mapping(options));
  SKIFF_ASSIGN(Connection * server, context.connect());
  SKIFF_ASSIGN(const api::Kind kind, server->kind_of(object));
  client::Write write{.verb = client::Verb::kCreate, .resource = kind.resource, .body = object};
  auto done = server->client().write(write);
  if (!done && done.error().code == Code::kAlreadyExists) {
    write.verb = client::Verb::kMergePatch;
    write.name = api::name(object);
    // What the old mapping said and the new one does not must go.
    json::object& spec = write.body.as_object()["spec"].as_object();
    for (const char* field :
         {"host", "rootfs", "venv", "entrypoint", "workingDir", "env", "mounts"}) {
      if (!spec.contains(field)) spec[field] = nullptr;
    }
    done = server->client().write(write);
  }
  if (!done) return std::unexpected(done.error());
  fmt::print("imagemapping/{} maps {}\n", api::name(object), options.pattern);
  return {};
}

}  // namespace

void add_image(CLI::App& app, Context& context, int& exit_code) {
  auto options = std::make_shared<ImageOptions>();
  CLI::App* image =
      app.add_subcommand("image", "Images, and what their names mean on this machine");
  image->require_subcommand(1);
  CLI::App* map = image->add_subcommand("map", "Map an image (or pattern) to this machine's files");
  map->add_option("image", options->pattern, "Image or pattern: gcr.io/your-project/*")->required();
  map->add_option("program", options->program,
                  "After --: the entrypoint, where its arguments begin with dashes");
  map->add_flag("--host", options->host, "The machine's own files");
  map->add_option("--venv", options->venv, "A Python environment of this machine");
  map->add_option("--rootfs", options->rootfs, "A folder that holds a whole file system");
  map->add_option("--entrypoint", options->entrypoint,
                  "Program and arguments where the pod names none")
      ->expected(1, -1);
  map->add_option("--workdir", options->working_dir, "Working directory");
  map->add_option("--env", options->env, "NAME=value")->allow_extra_args(false);
  map->add_option("--mount", options->mounts, "SOURCE:TARGET[:ro]")->allow_extra_args(false);
  map->add_option("--name", options->name, "Name of the mapping object");
  map->callback([options, &context, &exit_code] {
    if (auto done = run_map(context, *options); !done) exit_code = report(done.error());
  });
  add_image_store(*image, context, exit_code);
}

}  // namespace skiff::cli
