#include "client/remote/credentials.h"

#include <chrono>
#include <fstream>
#include <iterator>

#include "base/base64.h"
#include "base/strings.h"

namespace skiff::client {
namespace {

Time system_now() { return std::chrono::floor<Duration>(std::chrono::system_clock::now()); }

Result<std::string> read_token(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const std::string_view token = trim(text);
  if (!file || token.empty()) {
    return fail(Code::kUnauthorized, "cannot read a token from " + path.string());
  }
  return std::string(token);
}

}  // namespace

Credentials::Credentials(Access access, RunPlugin run, Now now)
    : access_(std::move(access)),
      run_(std::move(run)),
      now_(now ? std::move(now) : Now(system_now)) {}

// What the user's entry says itself wins, as in kubectl.
bool Credentials::uses_plugin() const {
  return access_.exec && access_.token.empty() && access_.token_file.empty() &&
         access_.user.empty() && access_.endpoint.key_pem.empty();
}

Result<std::string> Credentials::bearer() {
  if (access_.token_file.empty()) return access_.token;
  auto read = read_token(access_.token_file);
  // A file that is being replaced is there again soon; the last token is likely still good.
  if (!read && token_.empty()) return read;
  if (read && *read != token_) {
    token_ = std::move(*read);
    ++serial_;
  }
  return token_;
}

Result<void> Credentials::take_plugin() {
  SKIFF_ASSIGN(given_, run_(*access_.exec));
  ++serial_;
  return {};
}

Auth Credentials::made_with(const std::string& token) const {
  const bool plugin = uses_plugin();
  Auth out{.headers = access_.impersonation(),
           .certificate_pem = plugin ? given_->certificate_pem : access_.endpoint.certificate_pem,
           .key_pem = plugin ? given_->key_pem : access_.endpoint.key_pem,
           .serial = serial_};
  if (!token.empty()) {
    out.headers.emplace_back("Authorization", "Bearer " + token);
  } else if (!access_.user.empty()) {
    out.headers.emplace_back("Authorization",
                             "Basic " + base64::encode(access_.user + ":" + access_.password));
  }
  return out;
}

Result<std::shared_ptr<const Auth>> Credentials::current() {
  const std::lock_guard lock(mutex_);
  std::string token;
  if (uses_plugin()) {
    const bool expired = given_ && given_->expires && now_() > *given_->expires;
    if (!given_ || expired) SKIFF_TRY(take_plugin());
    token = given_->token;
  } else {
    SKIFF_ASSIGN(token, bearer());
  }
  if (!made_ || made_->serial != serial_) made_ = std::make_shared<const Auth>(made_with(token));
  return made_;
}

bool Credentials::refresh(std::uint64_t serial) {
  const std::lock_guard lock(mutex_);
  if (uses_plugin() && serial == serial_) return take_plugin().has_value();
  if (!access_.token_file.empty()) (void)bearer();
  return serial != serial_;
}

}  // namespace skiff::client
