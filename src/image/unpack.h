// A layer's archive as a folder that overlayfs can lie on.
//
// The archive is hostile: every path is looked up with the folder as its root (openat2), so neither
// "..", nor an absolute link, nor a link of the same archive leads outside. Devices are left out:
// containers get theirs elsewhere. Whiteouts become what overlayfs takes for them.
#pragma once

#include <string>

#include "base/result.h"
#include "image/source.h"

namespace skiff::image {

// `folder` must exist and be empty. Needs root: owners, whiteouts and their attributes.
Result<void> unpack_layer(Source& tar, const std::string& folder);

}  // namespace skiff::image
