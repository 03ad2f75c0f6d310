#include "client/remote/session.h"

#include <fmt/format.h>

#include <charconv>

namespace skiff::client {
namespace {

constexpr int kTimesMost = 10;

Duration elapsed(std::chrono::steady_clock::time_point t) {
  return std::chrono::duration_cast<Duration>(t.time_since_epoch());
}

// Lists and logs take as long as they are long, and reads pass no admission; writes are alike.
bool comparable(const http::Request& request, const http::Response& answer) {
  return request.method != "GET" && answer.body.size() < 64 * 1024;
}

}  // namespace

std::optional<Duration> retry_after(int status, const http::Headers& headers) {
  if (status != 429 && status < 500) return {};
  const std::string_view text = http::header(headers, "Retry-After");
  int seconds = 0;
  const auto end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, seconds);
  if (text.empty() || read.ec != std::errc{} || read.ptr != end || seconds < 0) return {};
  return std::chrono::seconds(seconds);
}

Session::Session(Access access, SessionOptions options, Credentials::RunPlugin run)
    : options_(std::move(options)),
      credentials_(std::move(access), std::move(run)),
      pace_(options_.pace) {}

Result<std::shared_ptr<const net::Route>> Session::route(const Auth& auth) {
  const std::lock_guard lock(mutex_);
  if (route_ && route_serial_ == auth.serial) return route_;
  net::Endpoint endpoint = access().endpoint;
  endpoint.certificate_pem = auth.certificate_pem;
  endpoint.key_pem = auth.key_pem;
  http::Headers headers = auth.headers;
  headers.emplace_back("User-Agent", options_.user_agent);
  headers.emplace_back("Accept", "application/json");
  SKIFF_ASSIGN(route_, http_.route(std::move(endpoint), std::move(headers)));
  route_serial_ = auth.serial;
  return route_;
}

Result<void> Session::take_turn(Clock::time_point end) {
  std::unique_lock lock(mutex_);
  const auto now = Clock::now();
  const Duration wait = pace_.delay(elapsed(now));
  if (now + wait > end) {
    return fail(Code::kTooManyRequests,
                fmt::format("the API server asks us to wait; the next request may go in {} s",
                            std::chrono::ceil<std::chrono::seconds>(wait).count()));
  }
  pace_.reserve(elapsed(now));
  if (wait > Duration::zero()) stopped_.wait_until(lock, now + wait, [&] { return stopping_; });
  if (stopping_) return fail(Code::kServiceUnavailable, "the client is shutting down");
  return {};
}

void Session::note(const http::Request& request, const Result<http::Response>& answer,
                   Clock::duration took) {
  Fared how;
  if (answer) {
    how.overloaded = answer->status == 429 || answer->status >= 500;
    how.retry_after = retry_after(answer->status, answer->headers);
    if (!how.overloaded && comparable(request, *answer)) {
      how.latency = std::chrono::duration_cast<Duration>(took);
    }
  } else {
    // One that cannot be reached is not helped by our asking less; one that is late is.
    how.overloaded = answer.error().code == Code::kTimeout;
    if (!how.overloaded) return;
  }
  const std::lock_guard lock(mutex_);
  pace_.fared(elapsed(Clock::now()), how);
}

Result<http::Response> Session::send(const http::Request& request) {
  const auto end = Clock::now() + options_.timeout;
  bool renewed = false;
  for (int times = 1;; ++times) {
    SKIFF_TRY(take_turn(end));
    SKIFF_ASSIGN(const auto auth, credentials_.current());
    SKIFF_ASSIGN(const auto way, route(*auth));
    const auto began = Clock::now();
    auto answer = http_.send(way, request, options_.timeout);
    note(request, answer, Clock::now() - began);
    if (!answer) return answer;
    if (answer->status == 401 && !renewed && credentials_.refresh(auth->serial)) {
      renewed = true;
      continue;
    }
    const auto again = retry_after(answer->status, answer->headers);
    if (!again || times == kTimesMost || Clock::now() + *again > end) return answer;
  }
}

Result<Session::Stream> Session::open(net::Client& line, const http::Request& request) {
  for (bool renewed = false;; renewed = true) {
    SKIFF_ASSIGN(const auto auth, credentials_.current());
    SKIFF_ASSIGN(const auto way, route(*auth));
    auto stream = line.open(way, request, options_.timeout);
    const bool refused = stream && (*stream)->status() == 401;
    if (!refused || renewed || !credentials_.refresh(auth->serial)) return stream;
  }
}

std::shared_ptr<net::Client> Session::new_line() {
  auto line = http_.sibling();
  const std::lock_guard lock(mutex_);
  std::erase_if(lines_, [](const auto& other) { return other.expired(); });
  lines_.push_back(line);
  if (stopping_) line->shut_down();
  return line;
}

void Session::shut_down() {
  std::vector<std::shared_ptr<net::Client>> lines;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    for (const auto& line : lines_) {
      if (auto held = line.lock()) lines.push_back(std::move(held));
    }
  }
  stopped_.notify_all();
  http_.shut_down();
  for (const auto& line : lines) line->shut_down();
}

bool Session::stopped() const {
  const std::lock_guard lock(mutex_);
  return stopping_;
}

double Session::per_second() const {
  const std::lock_guard lock(mutex_);
  return pace_.per_second();
}

}  // namespace skiff::client
