#include "client/remote/remote_watch.h"

#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/limits.h"
#include "client/remote/status.h"

namespace skiff::client {
namespace {

// An object is at most a request body; its event adds little.
constexpr std::size_t kLineBytes = 2 * limits::kRequestBodyBytes;

class RemoteWatch : public Watch {
 public:
  RemoteWatch(std::unique_ptr<net::StreamingResponse> stream, std::size_t events_max,
              std::function<void()> ready)
      : stream_(std::move(stream)), events_max_(events_max), ready_(std::move(ready)) {
    reader_ = std::thread([this] { read(); });
  }

  ~RemoteWatch() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    drained_.notify_all();
    stream_->cancel();
    reader_.join();
  }

  Result<std::vector<Event>> poll() override {
    const std::lock_guard lock(mutex_);
    if (events_.empty() && broken_) return std::unexpected(*broken_);
    std::vector<Event> out;
    out.swap(events_);
    drained_.notify_all();
    return out;
  }

 private:
  void read() {
    const Result<void> ended = read_lines();
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
      broken_ = ended ? Error{.code = Code::kServiceUnavailable, .message = "the watch has ended"}
                      : ended.error();
    }
    ready_();
  }

  Result<void> read_lines() {
    std::string text;
    while (true) {
      SKIFF_ASSIGN(const auto piece, stream_->read());
      if (!piece) return {};
      text += *piece;
      std::size_t begin = 0;
      for (std::size_t end = text.find('\n'); end != std::string::npos;
           end = text.find('\n', begin)) {
        const std::string_view line(text.data() + begin, end - begin);
        begin = end + 1;
        if (line.empty()) continue;
        SKIFF_ASSIGN(auto event, parse_watch_line(line));
        if (event && !push(std::move(*event))) return {};
      }
      text.erase(0, begin);
      if (text.size() > kLineBytes) {
        return fail(Code::kTooLarge, "an event of the watch is too large to hold");
      }
    }
  }

  // False: nobody will ask any more.
  bool push(Event event) {
    bool first = false;
    {
      std::unique_lock lock(mutex_);
      drained_.wait(lock, [&] { return stopping_ || events_.size() < events_max_; });
      if (stopping_) return false;
      first = events_.empty();
      events_.push_back(std::move(event));
    }
    if (first) ready_();
    return true;
  }

  const std::unique_ptr<net::StreamingResponse> stream_;
  const std::size_t events_max_;
  const std::function<void()> ready_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable drained_;
  std::vector<Event> events_;
  std::optional<Error> broken_;
  bool stopping_ = false;
  std::thread reader_;
};

}  // namespace

Result<std::optional<Event>> parse_watch_line(std::string_view line) {
  SKIFF_ASSIGN(json::value event, json::parse(line));
  const std::string_view type = json::get_string(event, {"type"});
  const json::value* object = json::find(event, {"object"});
  if (object == nullptr) return fail(Code::kInternal, "a watch event has no object");
  if (type == "ERROR") return std::unexpected(error_of_status(*object));
  Event out;
  if (type == "ADDED") {
    out.type = EventType::kAdded;
  } else if (type == "MODIFIED") {
    out.type = EventType::kModified;
  } else if (type == "DELETED") {
    out.type = EventType::kDeleted;
  } else {
    return std::optional<Event>();
  }
  out.object = std::make_shared<const json::value>(std::move(event.as_object()["object"]));
  return out;
}

std::unique_ptr<Watch> make_watch(std::unique_ptr<net::StreamingResponse> stream,
                                  std::size_t events_max, std::function<void()> ready) {
  return std::make_unique<RemoteWatch>(std::move(stream), events_max, std::move(ready));
}

}  // namespace skiff::client
