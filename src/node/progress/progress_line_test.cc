#include "node/progress/progress_line.h"

#include <gtest/gtest.h>

namespace skiff::node {
namespace {

// step/total epoch/total, "bar", then the metrics.
std::string text(std::string_view line) {
  const auto read = parse_progress(line);
  if (!read) return "nothing";
  std::string out;
  const auto count = [&](const char* name, const auto& of, const auto& total) {
    if (!of && !total) return;
    out += std::string(name) + (of ? std::to_string(*of) : "") +
           (total ? "/" + std::to_string(*total) : "") + " ";
  };
  count("s", read->step, read->total_steps);
  count("e", read->epoch, read->total_epochs);
  if (read->bar) out += "bar ";
  for (const auto& [name, value] : read->metrics) out += name + "=" + value + " ";
  if (!out.empty()) out.pop_back();
  return out;
}

TEST(ProgressLine, TheFormsPeoplePrint) {
  const struct {
    std::string_view line, read;
  } cases[] = {
      {"step 10/100 loss=0.3", "s10/100 loss=0.3"},
      {"Step: 10/100, loss: 0.3000", "s10/100 loss=0.3000"},
      {"step [10/100] loss: 0.3", "s10/100 loss=0.3"},
      {"Step 10 of 100", "s10/100"},
      {"step 10 / 100", "s10/100"},
      {"global_step=7 lr=1e-05", "s7 lr=1e-05"},
      {"iteration 5: loss = 0.25, accuracy = 0.9", "s5 loss=0.25 accuracy=0.9"},
      {"Epoch 3/10", "e3/10"},
      {"Epoch [3/10], Step [100/938], Loss: 0.2", "s100/938 e3/10 Loss=0.2"},
      {"epoch=3 val_loss=0.5 val/acc=91.5%", "e3 val_loss=0.5 val/acc=91.5"},
      {"Train Epoch: 1 [640/60000 (1%)]\tLoss: 2.300", "s640/60000 e1 bar Loss=2.300"},
      {"2026-11-15 12:00:01,123 INFO worker:0 step 3/9 loss=1", "s3/9 loss=1"},
      {"I1115 12:00:01.123456 140 train.py:88] step 3", "s3"},
      {"{'loss': 0.5, 'learning_rate': 1e-05, 'epoch': 0.3}", "e0 loss=0.5 learning_rate=1e-05"},
      {"[12]\ttrain-logloss:0.48\teval-auc:0.91", "s12 train-logloss=0.48 eval-auc=0.91"},
      {"loss=0.3 accuracy=0.91", "loss=0.3 accuracy=0.91"},
      {"Validation-Accuracy=0.95", "Validation-Accuracy=0.95"},
      {"step 4 loss=nan", "s4 loss=nan"},
      {"rank 0 of 2: step 8/80 loss 0.5", "s8/80"},
  };
  for (const auto& c : cases) EXPECT_EQ(text(c.line), c.read) << c.line;
}

TEST(ProgressLine, BarsOfKerasAndTqdm) {
  const struct {
    std::string_view line, read;
  } cases[] = {
      {"120/938 [==>...........] - ETA: 3s - loss: 0.3 - accuracy: 0.9",
       "s120/938 bar loss=0.3 accuracy=0.9"},
      {"938/938 [==============] - 3s 2ms/step - loss: 0.3 - val_loss: 0.4",
       "s938/938 bar loss=0.3 val_loss=0.4"},
      {"\x1b[1m120/938\x1b[0m \x1b[32m━━━\x1b[0m\x1b[37m━━\x1b[0m \x1b[1m3s\x1b[0m 2ms/step - "
       "accuracy: 0.9 - loss: 0.3",
       "s120/938 bar accuracy=0.9 loss=0.3"},
      {" 45%|████▌     | 45/100 [00:03<00:04, 12.1it/s, loss=0.31]", "s45/100 bar loss=0.31"},
      {"Epoch 3:  45%|████▌     | 45/100 [00:03<00:04, 12.1it/s, v_num=0]",
       "s45/100 e3 bar v_num=0"},
      {"Epoch 3/10: 100%|##########| 9/9 [00:01<00:00]", "s9/9 e3/10 bar"},
  };
  for (const auto& c : cases) EXPECT_EQ(text(c.line), c.read) << c.line;
}

TEST(ProgressLine, JsonObjects) {
  const struct {
    std::string_view line, read;
  } cases[] = {
      {R"({"step": 10, "total_steps": 100, "loss": 0.25})", "s10/100 loss=0.25"},
      {R"({"epoch": 2, "epochs": 5, "metrics": {"accuracy": 1}})", "e2/5 accuracy=1"},
      {R"({"metrics": {"auc": 3}})", "auc=3"},
      {R"({"global_step": 10, "max_steps": 20, "time": 5, "rank": 0})", "s10/20"},
      {R"({"step": 30, "total_steps": 20})", "s30"},
      {R"({"level": "info", "msg": "ready", "port": 80, "loss": 1})", "nothing"},
      {R"({"step": "ten"})", "nothing"},
      {R"({"step": -5})", "nothing"},
      {R"({"step": 1, "a\u001b[2J": 1, "b\u009b2J": 2, "c\n": 3, "d\u007f": 4})", "s1"},
      {R"({"step": 1, "metrics": {"x\u0007": 1, "\u00e9": 2}})", "s1 \xc3\xa9=2"},
  };
  for (const auto& c : cases) EXPECT_EQ(text(c.line), c.read) << c.line;
}

TEST(ProgressLine, OtherLinesSayNothing) {
  for (const std::string_view line :
       {"", "   ", "hello", "listening on 10.0.0.1:2222", "2026-11-15T12:00:00Z started",
        "[12] ready", "loss is high", "footstep 3", "steps", "step one", "epoch", "x=1 y=2",
        "error: file not found", "Downloading 10/20 files", "accuracy: 3 files", "a/b",
        "99999999999999999999999 / 3", "step 99999999999999999999999"}) {
    EXPECT_EQ(text(line), "nothing") << line;
  }
}

TEST(ProgressLine, AnyBytesAreReadWithinBounds) {
  std::string long_line = "step 1/2 ";
  for (int i = 0; i < 5000; ++i) long_line += "m" + std::to_string(i) + "=1 ";
  const auto read = parse_progress(long_line);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->metrics.size(), kProgressMetrics);
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  EXPECT_EQ(text(bytes + "step 3"), "s3");
  EXPECT_EQ(text("\xff\xfe step 3\x1b"), "s3");
  EXPECT_EQ(text("\x1b[1;31mstep 4\x1b["), "s4");
  EXPECT_EQ(text("step 1 " + std::string(65, 'n') + "=1"), "s1") << "a name too long";
  EXPECT_EQ(text("step 1 m=0." + std::string(40, '1')), "s1") << "a number too long";
}

}  // namespace
}  // namespace skiff::node
