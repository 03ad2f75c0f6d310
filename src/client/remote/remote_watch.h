// A watch over HTTP: a thread reads lines, poll() hands out what they say.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "client/client.h"
#include "net/client.h"

namespace skiff::client {

// One line of a watch. BOOKMARK lines are no event: nothing. ERROR lines are the error they carry.
Result<std::optional<Event>> parse_watch_line(std::string_view line);

// Reads ahead at most `events_max` events: then the server waits for poll().
std::unique_ptr<Watch> make_watch(std::unique_ptr<net::StreamingResponse> stream,
                                  std::size_t events_max, std::function<void()> ready);

}  // namespace skiff::client
