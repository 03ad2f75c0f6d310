// Who we are to a server, as it is now: credentials change while a client runs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/http.h"
#include "base/result.h"
#include "base/time.h"
#include "client/remote/access.h"

namespace skiff::client {

struct Auth {
  http::Headers headers = {};
  std::string certificate_pem = {};
  std::string key_pem = {};
  std::uint64_t serial = 0;  // grows when any of it changes
};

// Thread-safe. A plug-in runs once for all who wait for it.
class Credentials {
 public:
  using RunPlugin = std::function<Result<Credential>(const ExecPlugin&)>;
  using Now = std::function<Time()>;
  explicit Credentials(Access access, RunPlugin run = run_exec, Now now = {});

  // Reads the token's file again, and runs the plug-in where what it gave has expired. The same
  // object as before where nothing has changed.
  Result<std::shared_ptr<const Auth>> current();
  // After the server has refused what current() gave with this serial: true where there is
  // something newer to try.
  bool refresh(std::uint64_t serial);

  const Access& access() const { return access_; }

 private:
  Result<std::string> bearer();
  Auth made_with(const std::string& token) const;
  Result<void> take_plugin();
  bool uses_plugin() const;

  const Access access_;
  const RunPlugin run_;
  const Now now_;
  std::mutex mutex_;  // guards what follows
  std::optional<Credential> given_ = {};
  std::string token_ = {};  // as the file had it when it could last be read
  std::uint64_t serial_ = 1;
  std::shared_ptr<const Auth> made_ = {};
};

}  // namespace skiff::client
