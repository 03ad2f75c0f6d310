// Writes Kubernetes Events. The same note on the same object is one Event whose count grows.
//
// Events inform and are never needed: a write that fails is dropped, and none waits for the disk.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/time.h"
#include "client/client.h"
#include "control/controller.h"
#include "env/env.h"

namespace skiff::control {

// <name>.<hex>: the hex stands for what is said about which object by whom, so that a restarted
// process finds the Event it wrote before.
std::string event_name(const json::value& about, std::string_view component, const Note& note);

class EventRecorder {
 public:
  EventRecorder(client::Client& client, const env::Clock& clock);

  // `at`: when it happened, where that is not now.
  void record(const Object& about, std::string_view component, const Note& note,
              std::optional<Time> at = {});
  // Writes what was recorded, but no more than a moment's worth, and not more at once than the
  // server answers: ten thousand pods that find a place at once have ten thousand events. True
  // where more can be written at once; else an answer is waited for, or nothing is left.
  bool write_some();

 private:
  struct Known {
    std::int64_t count = 0;
    Duration written = {};
  };
  struct State {
    std::map<std::uint64_t, Known> known = {};  // by event_hash()
    std::size_t in_flight = 0;
  };
  // Without the object itself, of which a newer version takes the place meanwhile.
  struct Recorded {
    std::uint64_t hash = 0;
    std::string about = {};  // what involvedObject says, as text
    std::string ns = {};
    std::string name = {};
    std::string component = {};
    Note note = {};
    Time at = {};  // when it happened; it may be written later
  };
  void write(const Recorded& recorded);
  void create(const Recorded& recorded);
  void raise(const Recorded& recorded, std::int64_t count);
  void submit(client::Write write,
              std::function<void(State& state, const Result<json::value>& answer)> done);

  client::Client& client_;
  const env::Clock& clock_;
  std::deque<Recorded> recorded_ = {};
  // Answers may arrive after the recorder is gone; they hold this weakly.
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace skiff::control
