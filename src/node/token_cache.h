// Tokens of service accounts as pods have them: one is kept until it is time for the next.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "env/env.h"
#include "node/environment.h"

namespace skiff::node {

// When a token of this age and life is replaced: after four fifths of its life, and after a day at
// the latest. As the kubelet does it, so that a program which reads the file anew is never late.
bool renewal_due(Duration age, Duration life);

class TokenCache {
 public:
  // Both must outlive the cache.
  TokenCache(const TokenSource& source, const env::Clock& clock) : source_(source), clock_(clock) {}

  // The token at hand, or a new one. Where none is to be had, the old one as long as it is valid.
  Result<std::string> get(const TokenWish& wish);
  void forget(std::string_view pod_uid);
  std::size_t size() const { return tokens_.size(); }

 private:
  struct Known {
    std::string pod_uid = {};
    std::string token = {};
    Time since = {};
  };
  const TokenSource& source_;
  const env::Clock& clock_;
  std::map<std::string, Known, std::less<>> tokens_ = {};  // by everything in the wish
};

}  // namespace skiff::node
