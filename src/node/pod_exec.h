// A program in a container with its three streams, or a terminal, held by a thread of its own.
#pragma once

#include <memory>
#include <string_view>

#include "apiserver/pod_streams.h"
#include "node/runtime.h"

namespace skiff::node {

Result<std::unique_ptr<apiserver::Terminal>> open_terminal(Runtime& runtime,
                                                           std::string_view pod_uid,
                                                           const apiserver::ExecOptions& options);

}  // namespace skiff::node
