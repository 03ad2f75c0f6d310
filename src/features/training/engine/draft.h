// A plan in the making: what is known, the status as it will be, and the writes so far.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "control/controller.h"
#include "features/training/engine/job.h"
#include "features/training/engine/replicas.h"

namespace skiff::training {

struct Draft {
  Job job = {};
  Replicas replicas = {};
  json::object status = {};
  Time now = {};
  control::Plan plan = {};
  std::vector<control::Note> standing = {};  // told by a plan that changes nothing
  // For the events; written once at the end, so that thousands can be told as one.
  std::vector<std::string> created_pods = {};
  std::vector<std::string> created_services = {};
  std::vector<std::string> deleted_pods = {};
  std::vector<std::string> deleted_services = {};

  // Both only where it is not being deleted already, and only the object seen: by uid.
  void delete_pod(const json::value& pod);
  void delete_service(const json::value& service);
  void create_pod(json::value pod);
  void create_service(json::value service);
  void note(bool warning, std::string_view word, std::string message);
  void look_again_after(Duration delay);  // the earliest of all calls holds
};

// The plan, with a status only where it differs from the one observed.
control::Plan finish(Draft draft);

}  // namespace skiff::training
