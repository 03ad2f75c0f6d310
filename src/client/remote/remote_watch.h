// A watch over HTTP: a thread reads lines, poll() hands out what they say. A stream that ends or
// breaks is opened again where it stood.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "client/client.h"
#include "client/remote/session.h"

namespace skiff::client {

struct WatchLine {
  std::optional<Event> event = {};  // none: a bookmark, or a type we do not know
  std::uint64_t revision = 0;       // the watch may go on from here
};
// ERROR lines are the error they carry.
Result<WatchLine> parse_watch_line(std::string_view line);

struct WatchOptions {
  std::size_t events_max = 1'000;  // held for a slow poll(); past it the server has to wait
  // How long a server that went away is asked to go on before poll() tells.
  std::chrono::milliseconds patience = std::chrono::seconds(30);
};

// Opens it; the error of a refused one is the server's.
Result<std::unique_ptr<Watch>> open_watch(std::shared_ptr<Session> session,
                                          const api::Resource& resource,
                                          std::uint64_t after_revision, WatchOptions options,
                                          std::function<void()> ready);

}  // namespace skiff::client
