#include "client/remote/remote_watch.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "api/meta.h"
#include "base/limits.h"
#include "client/remote/lines.h"
#include "client/remote/managers.h"
#include "client/remote/requests.h"
#include "client/remote/status.h"
#include "env/posix/heap.h"

namespace skiff::client {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// An object is at most a request body; its event adds little.
constexpr std::size_t kLineBytes = 2 * limits::kRequestBodyBytes;
constexpr std::chrono::milliseconds kFirstPause = 20ms;
constexpr std::chrono::milliseconds kLongestPause = 2s;

// What may be over soon: the server restarts, is overloaded, or the way to it is broken.
bool passing(const Error& error) {
  return error.code == Code::kServiceUnavailable || error.code == Code::kTimeout ||
         error.code == Code::kTooManyRequests || error.code == Code::kInternal;
}

// The stream of a watch that the server agrees to.
Result<Session::Stream> open_stream(Session& session, net::Client& line,
                                    const api::Resource& resource, std::uint64_t after_revision) {
  SKIFF_ASSIGN(auto stream, session.open(line, {.target = watch_target(resource, after_revision)}));
  if (stream->status() == 200) return stream;
  http::Response refused{.status = stream->status(), .headers = stream->headers()};
  while (true) {
    SKIFF_ASSIGN(const auto piece, stream->read(session.timeout()));
    if (!piece) return std::unexpected(error_of(refused));
    refused.body += *piece;
  }
}

class RemoteWatch : public Watch {
 public:
  RemoteWatch(std::shared_ptr<Session> session, std::shared_ptr<net::Client> line,
              Session::Stream stream, api::Resource resource, std::uint64_t revision,
              WatchOptions options, std::function<void()> ready)
      : session_(std::move(session)),
        line_(std::move(line)),
        resource_(std::move(resource)),
        options_(options),
        ready_(std::move(ready)),
        stream_(std::move(stream)),
        revision_(revision) {
    reader_ = std::thread([this] { run(); });
  }

  ~RemoteWatch() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    line_->shut_down();
    reader_.join();
  }

  Result<std::vector<Event>> poll() override {
    const std::lock_guard lock(mutex_);
    if (events_.empty() && broken_) return std::unexpected(*broken_);
    std::vector<Event> out;
    out.swap(events_);
    changed_.notify_all();
    return out;
  }

 private:
  void run() {
    env::keep_no_spare_memory();
    while (true) {
      const auto began = Clock::now();
      const Result<void> ended = read_lines();
      stream_.reset();
      if (!ended && !passing(ended.error())) return give_up(ended.error());
      // One that lasted is followed at once; one that ends as it begins is not hammered.
      const bool lasted = Clock::now() - began > kLongestPause;
      const Result<void> resumed = resume(lasted ? 0ms : kFirstPause);
      if (!resumed) return give_up(resumed.error());
    }
  }

  void give_up(Error why) {
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
      broken_ = std::move(why);
    }
    ready_();
  }

  Result<void> resume(std::chrono::milliseconds pause) {
    const auto end = Clock::now() + options_.patience;
    while (true) {
      if (!sleep(pause) || session_->stopped()) {
        return fail(Code::kServiceUnavailable, "the watch has ended");
      }
      auto stream = open_stream(*session_, *line_, resource_, revision_);
      if (stream) {
        stream_ = std::move(*stream);
        return {};
      }
      if (!passing(stream.error()) || Clock::now() >= end) return std::unexpected(stream.error());
      pause = std::clamp(pause * 2, kFirstPause, kLongestPause);
      if (const auto wish = stream.error().retry_after_s) {
        pause = std::max(pause, std::chrono::milliseconds(std::chrono::seconds(*wish)));
      }
    }
  }

  // False: nobody will ask any more.
  bool sleep(std::chrono::milliseconds pause) {
    std::unique_lock lock(mutex_);
    return !changed_.wait_for(lock, pause, [&] { return stopping_; });
  }

  Result<void> read_lines() {
    LineBuffer text;
    while (true) {
      SKIFF_ASSIGN(const auto piece, stream_->read());
      if (!piece) return {};
      text.add(*piece);
      while (const auto line = text.next()) {
        if (line->empty()) continue;
        SKIFF_ASSIGN(auto read, parse_watch_line(*line));
        if (read.event && !push(std::move(*read.event))) return {};
        revision_ = std::max(revision_, read.revision);
      }
      if (text.rest().size() > kLineBytes) {
        return fail(Code::kTooLarge, "an event of the watch is too large to hold");
      }
    }
  }

  // False: nobody will ask any more.
  bool push(Event event) {
    bool first = false;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopping_ || events_.size() < options_.events_max; });
      if (stopping_) return false;
      first = events_.empty();
      events_.push_back(std::move(event));
    }
    if (first) ready_();
    return true;
  }

  const std::shared_ptr<Session> session_;
  const std::shared_ptr<net::Client> line_;
  const api::Resource resource_;
  const WatchOptions options_;
  const std::function<void()> ready_;
  Session::Stream stream_;  // the reader's own, as is the revision
  std::uint64_t revision_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::vector<Event> events_;
  std::optional<Error> broken_;
  bool stopping_ = false;
  std::thread reader_;
};

}  // namespace

Result<WatchLine> parse_watch_line(std::string_view line) {
  auto parsed = json::parse(without_managers(line, kEvent));
  // Not kInternal, which may pass: a server that speaks another language will not learn ours.
  if (!parsed)
    return fail(Code::kBadRequest, "a watch event is no JSON: " + parsed.error().message);
  json::value event = std::move(*parsed);
  const std::string_view type = json::get_string(event, {"type"});
  const json::value* object = json::find(event, {"object"});
  if (object == nullptr) return fail(Code::kBadRequest, "a watch event has no object");
  if (type == "ERROR") return std::unexpected(error_of_status(*object));
  WatchLine out{.revision = api::revision(*object)};
  EventType what{};
  if (type == "ADDED") {
    what = EventType::kAdded;
  } else if (type == "MODIFIED") {
    what = EventType::kModified;
  } else if (type == "DELETED") {
    what = EventType::kDeleted;
  } else {
    return out;
  }
  out.event =
      Event{.type = what,
            .object = std::make_shared<const json::value>(std::move(event.as_object()["object"]))};
  return out;
}

Result<std::unique_ptr<Watch>> open_watch(std::shared_ptr<Session> session,
                                          const api::Resource& resource,
                                          std::uint64_t after_revision, WatchOptions options,
                                          std::function<void()> ready) {
  auto line = session->new_line();
  SKIFF_ASSIGN(auto stream, open_stream(*session, *line, resource, after_revision));
  return std::make_unique<RemoteWatch>(std::move(session), std::move(line), std::move(stream),
                                       resource, after_revision, options, std::move(ready));
}

}  // namespace skiff::client
