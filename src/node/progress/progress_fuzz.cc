// Progress in any bytes: bounded, sensible, and the same however they are cut.
#include "base/fuzz.h"
#include "node/progress/progress_scan.h"

SKIFF_FUZZ(text) {
  using namespace skiff;
  if (const auto line = node::parse_progress(text)) {
    SKIFF_CHECK(line->metrics.size() <= node::kProgressMetrics, "few metrics");
    SKIFF_CHECK(!line->step || *line->step >= 0, "steps count up");
    SKIFF_CHECK(!line->epoch || *line->epoch >= 0, "epochs, too");
  }
  node::ProgressScan whole, cut;
  const Time now = *parse_time("2026-11-15T12:00:00Z");
  whole.file_bytes(text, now);
  whole.log_bytes(text);
  const std::size_t half = text.size() / 2;
  cut.file_bytes(text.substr(0, half), now);
  cut.file_bytes(text.substr(half), now);
  cut.log_bytes(text.substr(0, half));
  cut.log_bytes(text.substr(half));
  const auto told = whole.tracker().told();
  const bool bounded = text.size() < 8000;  // longer lines may be given up at another byte
  SKIFF_CHECK(!bounded || told == cut.tracker().told(), "however it is cut");
  SKIFF_CHECK(json::serialize(told).size() < 64 * 1024, "small enough for an annotation");
  if (const auto done = whole.tracker().fraction()) {
    SKIFF_CHECK(*done >= 0 && *done <= 1, "a part of the whole");
  }
}
