// What one line of a training program's output says about how far it is. Pure; any bytes will do.
//
// Recognised: `step 10/100 loss=0.3`, `Epoch 3/10`, `Train Epoch: 1 [640/60000 (1%)] Loss: 2.3`,
// bars of Keras and tqdm, XGBoost's `[12] train-logloss:0.48`, JSON objects, `metric=value`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace skiff::node {

struct ProgressLine {
  std::optional<std::int64_t> step = {};
  std::optional<std::int64_t> total_steps = {};
  std::optional<std::int64_t> epoch = {};
  std::optional<std::int64_t> total_epochs = {};
  bool bar = false;  // the steps are those of a bar, which starts anew with every epoch
  // As they were written, so that no digit is lost or made up.
  std::vector<std::pair<std::string, std::string>> metrics = {};

  bool operator==(const ProgressLine&) const = default;
};

// Only so much of a line is looked at, and so many metrics are taken from it.
inline constexpr std::size_t kProgressLineBytes = 4096;
inline constexpr std::size_t kProgressMetrics = 16;

// Nothing where the line says nothing about progress. Without '\r' and '\n': see progress_scan.h.
std::optional<ProgressLine> parse_progress(std::string_view line);

}  // namespace skiff::node
