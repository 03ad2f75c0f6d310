// What the API server asks of whoever runs pods: the bytes behind pods/NAME/log.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/http.h"
#include "base/json.h"
#include "base/result.h"
#include "base/time.h"

namespace skiff::apiserver {

struct LogOptions {
  std::string container = {};  // never empty: the server has chosen
  bool follow = false;
  bool previous = false;
  bool timestamps = false;
  std::optional<Time> since = {};
  std::optional<std::int64_t> tail_lines = {};
  std::optional<std::int64_t> limit_bytes = {};
};

class PodStreams {
 public:
  virtual ~PodStreams() = default;
  virtual Result<std::unique_ptr<http::Stream>> logs(const json::value& pod,
                                                     const LogOptions& options) = 0;
};

}  // namespace skiff::apiserver
