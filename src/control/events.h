// Writes Kubernetes Events. The same note on the same object is one Event whose count grows.
//
// Events inform and are never needed: a write that fails is dropped, and none waits for the disk.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
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

  void record(const Object& about, std::string_view component, const Note& note);

 private:
  struct Known {
    std::int64_t count = 0;
    Duration written = {};
  };
  struct State {
    std::map<std::string, Known> known = {};  // by namespace/name
  };
  void create(const std::string& ns, const std::string& name, const Object& about,
              std::string_view component, const Note& note);
  void raise(const std::string& ns, const std::string& name, std::int64_t count);

  client::Client& client_;
  const env::Clock& clock_;
  // Answers may arrive after the recorder is gone; they hold this weakly.
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace skiff::control
