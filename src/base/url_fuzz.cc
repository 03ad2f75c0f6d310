// Paths and queries of requests.
#include "base/fuzz.h"
#include "base/http.h"

SKIFF_FUZZ(text) {
  using namespace skiff;
  const auto url = http::parse_url(text);
  if (!url) return;
  std::string path;
  for (const std::string& segment : url->segments) {
    SKIFF_CHECK(segment != "." && segment != "..", "nobody climbs out of a path");
    path += "/" + http::escape(segment);
  }
  const auto again = http::parse_url(path.empty() ? "/" : path);
  SKIFF_CHECK(again && again->segments == url->segments, "escaped segments are the same: " + path);
  (void)url->flag("watch");
}
