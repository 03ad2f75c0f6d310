#include "image/images.h"

#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <thread>

#include "image/registry.h"
#include "net/client.h"
#include "net/pki.h"

namespace skiff::image {
namespace {

using namespace std::chrono_literals;

// A download that brings nothing for this long is dead.
constexpr auto kSilence = 60s;
// Tries in a row that bring nothing new.
constexpr int kTries = 4;
constexpr auto kPause = 250ms;

// One image on its way in.
class Pull {
 public:
  Pull(const Store& store, const PullRequest& request, net::Client& client,
       const std::stop_token& stop)
      : store_(store), request_(request), client_(client), stop_(stop) {}

  Result<StoredImage> run(const std::optional<Credentials>& credentials) {
    SKIFF_ASSIGN(registry_, Registry::open(client_, request_.reference, credentials));
    const Reference& reference = request_.reference;
    SKIFF_ASSIGN(Registry::Document document,
                 registry_->manifest(reference.digest.empty() ? reference.tag : reference.digest));
    StoredImage stored{.name = reference.text(), .target = document.digest};
    SKIFF_ASSIGN(json::value parsed, json::parse(document.text));
    if (is_index(parsed)) {
      SKIFF_ASSIGN(const Descriptor chosen, choose_platform(parsed, this_platform()));
      SKIFF_ASSIGN(document, registry_->manifest(chosen.digest));
      SKIFF_ASSIGN(parsed, json::parse(document.text));
    }
    stored.manifest = document.digest;
    SKIFF_ASSIGN(const Manifest manifest, parse_manifest(parsed));
    SKIFF_TRY(store_.add_blob(document.text));
    progress_.total = manifest.size();
    SKIFF_TRY(fetch(manifest.config));
    for (const Descriptor& layer : manifest.layers) SKIFF_TRY(fetch(layer));
    SKIFF_ASSIGN(const Image image, store_.read(stored));
    tell("unpacking");
    SKIFF_TRY(store_.unpack(image));
    SKIFF_TRY(store_.set(stored));
    return stored;
  }

 private:
  void tell(std::string what) {
    progress_.what = std::move(what);
    if (request_.progress) request_.progress(progress_);
  }

  Result<void> fetch(const Descriptor& blob) {
    const std::int64_t before = progress_.done;
    if (store_.has_blob(blob.digest)) {
      progress_.done = before + blob.size;
      tell(blob.digest.substr(0, 19));
      return {};
    }
    const auto writer = store_.new_blob();
    std::int64_t had = -1;
    for (int tries = 0; tries < kTries && !stop_.stop_requested(); ++tries) {
      const auto whole = download(blob, *writer, before);
      if (whole) {
        SKIFF_TRY(writer->finish(blob.digest, blob.size));
        return {};
      }
      // Only a broken line is worth another try.
      const Code code = whole.error().code;
      if (code != Code::kServiceUnavailable && code != Code::kTimeout) {
        return std::unexpected(whole.error());
      }
      last_ = whole.error();
      if (writer->size() > had) tries = 0;
      had = writer->size();
      std::this_thread::sleep_for(kPause);
    }
    if (stop_.stop_requested()) return fail(Code::kServiceUnavailable, "Skiff is stopping");
    return std::unexpected(last_);
  }

  Result<void> download(const Descriptor& blob, BlobWriter& writer, std::int64_t before) {
    SKIFF_ASSIGN(const Registry::Download from, registry_->blob(blob, writer.size()));
    if (!from.resumed) writer.start_over();
    while (true) {
      SKIFF_ASSIGN(const auto piece, from.stream->read(kSilence));
      if (!piece) break;
      SKIFF_TRY(writer.add(*piece));
      progress_.done = before + writer.size();
      tell(blob.digest.substr(0, 19));
      if (writer.size() > blob.size) {
        return fail(Code::kInvalid,
                    fmt::format("{} is longer than {} bytes", blob.digest, blob.size));
      }
    }
    if (writer.size() < blob.size) {
      return fail(Code::kServiceUnavailable, "the registry hung up within a layer");
    }
    return {};
  }

  const Store& store_;
  const PullRequest& request_;
  net::Client& client_;
  const std::stop_token& stop_;
  std::unique_ptr<Registry> registry_ = {};
  Progress progress_ = {};
  Error last_ = {};
};

std::string flight_key(const PullRequest& request) {
  std::string key = request.reference.text();
  for (const Credentials& c : request.credentials) {
    key += "\n" + net::sha256_hex(c.username + "\n" + c.password + "\n" + c.identity_token);
  }
  return key;
}

}  // namespace

Result<std::unique_ptr<Images>> Images::open(const std::string& folder) {
  SKIFF_ASSIGN(Store store, Store::open(folder));
  return std::unique_ptr<Images>(new Images(std::move(store)));
}

Result<StoredImage> Images::fetch(const PullRequest& request, const std::stop_token& stop) const {
  SKIFF_ASSIGN(const auto lease, store_.adding());
  net::Client client;
  const std::stop_callback hang_up(stop, [&client] { client.shut_down(); });
  std::vector<std::optional<Credentials>> all(request.credentials.begin(),
                                              request.credentials.end());
  if (all.empty()) all.emplace_back(std::nullopt);
  Result<StoredImage> result = StoredImage{};
  for (const auto& credentials : all) {
    result = Pull(store_, request, client, stop).run(credentials);
    const bool denied = !result && (result.error().code == Code::kUnauthorized ||
                                    result.error().code == Code::kForbidden);
    if (!denied) return result;
  }
  return result;
}

Result<StoredImage> Images::pull(const PullRequest& request, const std::stop_token& stop) {
  const std::string key = flight_key(request);
  std::shared_ptr<Flight> flight;
  {
    std::unique_lock lock(mutex_);
    if (const auto found = flights_.find(key); found != flights_.end()) {
      flight = found->second;
      if (!landed_.wait(lock, stop, [&] { return flight->landed; })) {
        return fail(Code::kServiceUnavailable, "Skiff is stopping");
      }
      return flight->result;
    }
    flight = std::make_shared<Flight>();
    flights_[key] = flight;
  }
  Result<StoredImage> result = fetch(request, stop);
  {
    const std::lock_guard lock(mutex_);
    flight->result = result;
    flight->landed = true;
    flights_.erase(key);
  }
  landed_.notify_all();
  return result;
}

Result<std::vector<std::string>> Images::hold(const std::string& owner,
                                              const StoredImage& stored) const {
  SKIFF_ASSIGN(const auto lease, store_.adding());
  SKIFF_TRY(store_.use(owner, stored));
  SKIFF_ASSIGN(const Image image, store_.read(stored));
  // An image that was loaded without root, or whose layers somebody removed by hand.
  SKIFF_TRY(store_.unpack(image));
  return store_.layers(image);
}

}  // namespace skiff::image
