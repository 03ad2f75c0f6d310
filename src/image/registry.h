// A registry as a client sees it: documents and blobs of one repository, over the distribution API.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "image/auth.h"
#include "image/manifest.h"
#include "image/reference.h"
#include "net/client.h"

namespace skiff::image {

class Registry {
 public:
  // `credentials`: none: as nobody. The client must outlive it.
  static Result<std::unique_ptr<Registry>> open(net::Client& client, const Reference& reference,
                                                std::optional<Credentials> credentials);

  struct Document {
    std::string text = {};
    std::string digest = {};  // of the text
  };
  // A manifest or index by tag or digest. What was asked for by digest has that digest.
  Result<Document> manifest(const std::string& tag_or_digest);

  // A blob from `offset` on; `false` as the second: the registry sent it from its beginning.
  struct Download {
    std::unique_ptr<net::StreamingResponse> stream = {};
    bool resumed = false;
  };
  Result<Download> blob(const Descriptor& descriptor, std::int64_t offset);

 private:
  Registry(net::Client& client, Reference reference, net::Endpoint endpoint,
           std::optional<Credentials> credentials);
  // Follows redirects and answers one challenge.
  Result<std::unique_ptr<net::StreamingResponse>> get(const std::string& target,
                                                      const http::Headers& headers);
  // `from_local`: who sent us there is at an address of this machine's own, and so may it be.
  Result<std::unique_ptr<net::StreamingResponse>> follow(const std::string& location,
                                                         const http::Headers& headers, int hops,
                                                         bool from_local);
  Result<void> authorize(std::string_view challenge, bool from_local);
  Result<void> fetch_token(const Challenge& challenge, bool from_local);
  // Somebody whom the registry sent us to cannot be asked.
  std::unexpected<Error> misled(std::string_view what, std::string_view where,
                                const Error& why) const;
  std::unexpected<Error> refused(int status, const std::string& body) const;

  net::Client& client_;
  const Reference reference_;
  const net::Endpoint endpoint_;
  const std::optional<Credentials> credentials_;
  std::string authorization_ = {};  // the header that was accepted last
  bool at_home_ = true;             // the last answer is the registry's own, not another's
};

}  // namespace skiff::image
