// The images a machine has and gets: the store, and registries behind it.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

#include "image/auth.h"
#include "image/reference.h"
#include "image/store.h"

namespace skiff::image {

struct Progress {
  std::int64_t done = 0;   // bytes
  std::int64_t total = 0;  // bytes; zero while it is not known
  std::string what = {};   // a word for people: the layer that is being worked on
};

struct PullRequest {
  Reference reference = {};
  std::vector<Credentials> credentials = {};  // tried in turn; none: as nobody
  std::function<void(const Progress&)> progress = {};
};

class Images {
 public:
  static Result<std::unique_ptr<Images>> open(const std::string& folder);

  const Store& store() const { return store_; }

  // Gets the image as the registry has it now; layers that are here are not fetched again. Two
  // threads that want the same image with the same credentials fetch it once. Blocks for as long as
  // it takes, or until `stop`.
  Result<StoredImage> pull(const PullRequest& request, const std::stop_token& stop = {});

  // For a pod that is about to run it: from now on it is not removed. The folders of its layers,
  // topmost first.
  Result<std::vector<std::string>> hold(const std::string& owner, const StoredImage& image) const;

 private:
  explicit Images(Store store) : store_(std::move(store)) {}
  Result<StoredImage> fetch(const PullRequest& request, const std::stop_token& stop) const;

  const Store store_;
  struct Flight {
    bool landed = false;
    Result<StoredImage> result = StoredImage{};
  };
  std::mutex mutex_;
  std::condition_variable_any landed_;
  std::map<std::string, std::shared_ptr<Flight>> flights_ = {};
};

}  // namespace skiff::image
