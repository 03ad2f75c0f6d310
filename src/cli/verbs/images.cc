// skiff image ls, pull, load, save, rm: the image store of the data folder. A running Skiff uses
// the same folder at the same time; the store's lock keeps the two apart, and nothing large goes
// through the API.
#include "image/images.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>

#include "api/meta.h"
#include "cli/image_text.h"
#include "cli/printer.h"
#include "cli/verbs/verbs.h"
#include "image/archive.h"

namespace skiff::cli {
namespace {

struct ImagesOptions {
  std::vector<std::string> images = {};
  std::string file = {};
  std::string name = {};
};

Result<std::unique_ptr<image::Images>> open_images(Context& context) {
  auto images = image::Images::open(context.globals.data + "/images");
  if (images) return images;
  return fail(images.error().code,
              fmt::format("cannot use the image store: {}; run this as the user who started Skiff",
                          images.error().message));
}

// What `docker login` has written.
image::Keyring docker_keys() {
  image::Keyring keyring;
  const char* folder = std::getenv("DOCKER_CONFIG");
  const char* home = std::getenv("HOME");
  const std::string path = folder != nullptr
                               ? fmt::format("{}/config.json", folder)
                               : fmt::format("{}/.docker/config.json", home == nullptr ? "" : home);
  const auto text = image::read_file(path);
  if (!text) return keyring;
  if (const auto config = json::parse(*text)) keyring.add(*config);
  return keyring;
}

// One line that is written over, and only where somebody looks.
class Bar {
 public:
  explicit Bar(std::string name) : name_(std::move(name)), shown_(isatty(STDERR_FILENO) != 0) {}
  ~Bar() { clear(); }
  Bar(const Bar&) = delete;
  Bar& operator=(const Bar&) = delete;

  void show(const image::Progress& progress) {
    using namespace std::chrono_literals;
    const auto now = std::chrono::steady_clock::now();
    const bool news = progress.done == progress.total;
    if (!shown_ || (drawn_ && !news && now - last_ < 100ms)) return;
    last_ = now;
    drawn_ = true;
    fmt::print(stderr, "\r\033[K{}", progress_line(name_, progress));
    std::fflush(stderr);
  }

  void clear() {
    if (std::exchange(drawn_, false)) fmt::print(stderr, "\r\033[K");
    std::fflush(stderr);
  }

 private:
  const std::string name_;
  const bool shown_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point last_ = {};
};

Result<void> run_pull(Context& context, const ImagesOptions& options) {
  SKIFF_ASSIGN(const auto images, open_images(context));
  const image::Keyring keys = docker_keys();
  for (const std::string& name : options.images) {
    SKIFF_ASSIGN(const image::Reference reference, image::parse_reference(name));
    image::PullRequest request{.reference = reference, .credentials = keys.lookup(reference)};
    Bar bar(reference.text());
    request.progress = [&bar](const image::Progress& progress) { bar.show(progress); };
    SKIFF_ASSIGN(const image::StoredImage stored, images->pull(request));
    bar.clear();
    fmt::print("{} {}\n", stored.name, stored.target);
  }
  // A name that moved on leaves its old image behind.
  SKIFF_TRY(images->store().collect());
  return {};
}

Result<void> run_load(Context& context, const ImagesOptions& options) {
  SKIFF_ASSIGN(const auto images, open_images(context));
  const bool standard = options.file.empty() || options.file == "-";
  if (standard && isatty(STDIN_FILENO) != 0) {
    return fail(Code::kBadRequest,
                "name a file, or pipe an archive in: docker save IMAGE | skiff "
                "image load");
  }
  const image::Fd file(standard ? ::dup(STDIN_FILENO)
                                : ::open(options.file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return image::os_failure(options.file);
  const auto source = image::fd_source(file.get(), standard ? "standard input" : options.file);
  const auto added = image::load_archive(images->store(), *source, options.name);
  // Also what an archive that broke off has left.
  SKIFF_TRY(images->store().collect());
  if (!added) return std::unexpected(added.error());
  for (const image::StoredImage& stored : *added) fmt::print("loaded {}\n", stored.name);
  return {};
}

Result<void> run_save(Context& context, const ImagesOptions& options) {
  SKIFF_ASSIGN(const auto images, open_images(context));
  std::vector<image::StoredImage> wanted;
  for (const std::string& name : options.images) {
    SKIFF_ASSIGN(const image::Reference reference, image::parse_reference(name));
    SKIFF_ASSIGN(image::StoredImage stored, images->store().find(reference));
    wanted.push_back(std::move(stored));
  }
  const bool standard = options.file.empty() || options.file == "-";
  if (standard && isatty(STDOUT_FILENO) != 0) {
    return fail(Code::kBadRequest, "an archive is no text for a terminal; add -o FILE");
  }
  const std::string part = options.file + ".part";
  const image::Fd file(standard
                           ? ::dup(STDOUT_FILENO)
                           : ::open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!file.valid()) return image::os_failure(part);
  const auto saved = image::save_archive(images->store(), wanted, [&](std::string_view bytes) {
    return image::write_all(file.get(), bytes, standard ? "standard output" : part);
  });
  if (standard) return saved;
  if (!saved) {
    (void)::unlink(part.c_str());
    return saved;
  }
  if (::rename(part.c_str(), options.file.c_str()) != 0) return image::os_failure(options.file);
  return {};
}

Result<void> run_remove(Context& context, const ImagesOptions& options) {
  SKIFF_ASSIGN(const auto images, open_images(context));
  for (const std::string& name : options.images) {
    SKIFF_ASSIGN(const image::Reference reference, image::parse_reference(name));
    SKIFF_TRY(images->store().remove(reference));
    fmt::print("removed {}\n", reference.text());
  }
  SKIFF_ASSIGN(const auto garbage, images->store().collect());
  if (garbage.busy) {
    fmt::print("an image is being pulled or loaded; its files go with the next removal\n");
  } else {
    fmt::print("freed {}\n", size_text(garbage.bytes));
  }
  return {};
}

// Mappings are objects of a running Skiff; without one there are only the images.
std::vector<ImageRow> mapping_rows(Context& context) {
  std::vector<ImageRow> rows;
  const auto server = context.connect();
  if (!server) return rows;
  const auto kind = (*server)->kind("imagemappings");
  if (!kind) return rows;
  const auto list = (*server)->client().list(kind->resource, "", {});
  if (!list) return rows;
  for (const Object& object : list->items) rows.push_back(mapping_row(*object));
  return rows;
}

Result<void> run_list(Context& context) {
  SKIFF_ASSIGN(const auto images, open_images(context));
  std::vector<ImageRow> rows = mapping_rows(context);
  SKIFF_ASSIGN(const auto stored, images->store().list());
  for (const image::StoredImage& image : stored) {
    const auto whole = images->store().read(image);
    rows.push_back({.image = image.name,
                    .is = whole ? image.target : "damaged: pull or load it again",
                    .bytes = whole ? whole->manifest.size() : 0});
  }
  if (context.globals.output == "json") {
    fmt::print("{}\n", json::pretty(rows_json(rows)));
  } else {
    fmt::print("{}", columns(rows_table(rows)));
  }
  return {};
}

}  // namespace

void add_image_store(CLI::App& image, Context& context, int& exit_code) {
  auto options = std::make_shared<ImagesOptions>();
  const auto on = [&context, &exit_code, options](CLI::App* verb, auto run) {
    verb->callback([&context, &exit_code, options, run] {
      if (auto done = run(context, *options); !done) exit_code = report(done.error());
    });
  };
  CLI::App* list = image.add_subcommand("ls", "List images and mappings");
  list->add_option("-o,--output", context.globals.output, "json")->check(CLI::IsMember({"json"}));
  on(list, [](Context& at, const ImagesOptions&) { return run_list(at); });
  CLI::App* pull = image.add_subcommand("pull", "Fetch images from their registries");
  pull->add_option("images", options->images, "busybox, ghcr.io/me/app:v1, ...")->required();
  on(pull, run_pull);
  CLI::App* load = image.add_subcommand("load", "Add the images of an archive (docker save, OCI)");
  load->add_option("file", options->file, "The archive; standard input where none is named");
  load->add_option("--name", options->name, "For an image that has no name of its own");
  on(load, run_load);
  CLI::App* save = image.add_subcommand("save", "Write images to one archive (OCI, docker load)");
  save->add_option("images", options->images, "Images")->required();
  save->add_option("-o,--output", options->file,
                   "The archive; standard output where none is named");
  on(save, run_save);
  CLI::App* remove =
      image.add_subcommand("rm", "Remove images; what pods run stays until they end");
  remove->add_option("images", options->images, "Images")->required();
  on(remove, run_remove);
}

}  // namespace skiff::cli
