// Images in files: what `docker save` and OCI tools write, and the same back.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "image/store.h"
#include "image/tar.h"

namespace skiff::image {

// Adds every image of the archive, which may be packed with gzip or zstd. `name` is for an archive
// of one image that has no name of its own. The answer has what was added.
Result<std::vector<StoredImage>> load_archive(const Store& store, Source& archive,
                                              const std::string& name = {});

// One archive that both OCI tools and `docker load` read.
Result<void> save_archive(const Store& store, const std::vector<StoredImage>& images,
                          const TarWriter::Sink& sink);

}  // namespace skiff::image
