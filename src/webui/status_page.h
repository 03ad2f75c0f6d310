// The page at `/`: what runs, what waits and why, without a script.
#pragma once

#include <string>
#include <vector>

#include "api/kind.h"
#include "base/http.h"
#include "base/json.h"
#include "base/time.h"
#include "client/client.h"

namespace skiff::webui {

struct Snapshot {
  std::string version = {};
  std::vector<Object> nodes = {};
  std::vector<Object> jobs = {};  // of every training kind
  std::vector<Object> pods = {};
};

// Every text that came from outside is escaped.
std::string render(const Snapshot& snapshot, Time now);

// Reads what the page shows and answers. `job_kinds` are the training kinds.
http::Response status_page(client::Client& client, const std::vector<api::Resource>& job_kinds,
                           const std::string& version, Time now);

std::string escape_html(std::string_view text);

}  // namespace skiff::webui
