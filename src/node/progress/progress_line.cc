#include "node/progress/progress_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <initializer_list>

#include "base/json.h"
#include "base/strings.h"

namespace skiff::node {
namespace {

constexpr std::size_t kNameBytes = 64;
constexpr std::size_t kNumberBytes = 32;

bool digit(char c) { return c >= '0' && c <= '9'; }
bool letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool word_char(char c) { return letter(c) || digit(c); }

bool among(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

bool step_word(std::string_view w) {
  return among(w, {"step", "steps", "global_step", "iter", "iteration", "batch", "round", "it"});
}
bool epoch_word(std::string_view w) { return w == "epoch" || w == "epochs"; }
bool total_steps_word(std::string_view w) {
  return among(w, {"total_steps", "totalsteps", "max_steps", "num_steps", "train_steps", "total"});
}
bool total_epochs_word(std::string_view w) {
  return among(
      w, {"total_epochs", "totalepochs", "max_epochs", "num_epochs", "epochs", "num_train_epochs"});
}
// Numbers that every program prints and that measure nothing a person trains for.
bool no_metric(std::string_view w) {
  return among(
      w, {"rank", "local_rank", "world_size", "pid",   "port",     "host",  "worker",  "gpu",
          "cuda", "device",     "eta",        "line",  "seed",     "id",    "node",    "thread",
          "task", "time",       "timestamp",  "ts",    "date",     "level", "version", "elapsed",
          "size", "of",         "job",        "index", "wall_time"});
}
// Words that make `name=value` a metric where nothing else in the line speaks of progress.
bool telling(std::string_view name) {
  static constexpr std::string_view kWords[] = {
      "loss", "acc",  "auc",   "f1",     "mse",    "rmse",      "mae",   "error",
      "ppl",  "bleu", "rouge", "recall", "reward", "precision", "score", "perplexity"};
  return std::ranges::any_of(kWords, [&](std::string_view w) { return name.contains(w); });
}

// Without colours and other things meant for a terminal. A bar's blocks become '|'.
std::string plain(std::string_view line) {
  std::string out;
  line = line.substr(0, kProgressLineBytes);
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '\x1b') {
      if (i + 1 < line.size() && line[i + 1] == '[') {
        i += 2;
        while (i < line.size() && !letter(line[i])) ++i;
      }
      continue;
    }
    if (static_cast<unsigned char>(c) >= 0x80) {
      if (!out.ends_with('|')) out += '|';
    } else if (c == '\t' || static_cast<unsigned char>(c) >= 0x20) {
      out += c == '\t' ? ' ' : c;
    }
  }
  return out;
}

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  bool done() const { return at_ >= text_.size(); }
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  char before() const { return at_ == 0 ? ' ' : text_[at_ - 1]; }
  void skip() { ++at_; }
  void spaces() {
    while (peek() == ' ') ++at_;
  }
  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  std::size_t at() const { return at_; }
  void back_to(std::size_t at) { at_ = at; }
  bool followed_by(std::string_view words) const { return text_.substr(at_).starts_with(words); }

  // Letters, digits, and between them . - / @, so that train-logloss and loss/val are one.
  std::string_view word() {
    const std::size_t from = at_;
    while (word_char(peek()) ||
           (among(text_.substr(std::min(at_, text_.size()), 1), {".", "-", "/", "@"}) &&
            at_ > from && letter(peek(1)))) {
      ++at_;
    }
    return text_.substr(from, at_ - from);
  }
  std::string_view digits() {
    const std::size_t from = at_;
    while (digit(peek())) ++at_;
    return text_.substr(from, at_ - from);
  }
  std::optional<std::int64_t> whole() {
    const std::string_view text = digits();
    std::int64_t out = 0;
    if (std::from_chars(text.data(), text.data() + text.size(), out).ec != std::errc()) return {};
    return text.empty() ? std::optional<std::int64_t>() : out;
  }
  // 0.3, -1e-05, nan. Empty: none here.
  std::string_view number() {
    const std::size_t from = at_;
    for (const std::string_view special : {"nan", "NaN", "inf", "-inf"}) {
      if (!followed_by(special) || word_char(peek(special.size()))) continue;
      at_ += special.size();
      return text_.substr(from, special.size());
    }
    if (peek() == '-' || peek() == '+') ++at_;
    const std::size_t begin = at_;
    digits();
    if (peek() == '.' && digit(peek(1))) {
      ++at_;
      digits();
    }
    if (at_ == begin) return back_to(from), std::string_view();
    if ((peek() == 'e' || peek() == 'E') &&
        (digit(peek(1)) || ((peek(1) == '-' || peek(1) == '+') && digit(peek(2))))) {
      at_ += 2;
      digits();
    }
    return text_.substr(from, at_ - from);
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

struct Count {
  std::int64_t of = 0;
  std::optional<std::int64_t> total = {};
};

// 10, 10/100, 10 / 100, 10 of 100, [10/100], and 0.33 as 0.
std::optional<Count> read_count(Reader& in) {
  if (in.peek() == '[' || in.peek() == '(') in.skip();
  const auto first = in.whole();
  if (!first) return {};
  Count out{.of = *first};
  if (in.peek() == '.' && digit(in.peek(1))) {
    in.skip();
    in.digits();
    return out;
  }
  const std::size_t after = in.at();
  in.spaces();
  if (in.followed_by("of ")) {
    in.back_to(in.at() + 2);
  } else if (!in.take('/')) {
    return in.back_to(after), out;
  }
  in.spaces();
  out.total = in.whole();
  if (!out.total || *out.total < out.of) return in.back_to(after), out.total.reset(), out;
  return out;
}

// Names end up in terminals: none with control characters, U+0080 to U+009F among them.
bool shows(std::string_view name) {
  unsigned char before = 0;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) return false;
    if (before == 0xc2 && byte >= 0x80 && byte <= 0x9f) return false;
    before = byte;
  }
  return true;
}

void take_metric(ProgressLine& out, std::string_view name, std::string_view value) {
  if (name.empty() || name.size() > kNameBytes || value.empty() || value.size() > kNumberBytes) {
    return;
  }
  if (!shows(name)) return;
  for (auto& [known, old] : out.metrics) {
    if (known == name) return void(old = value);
  }
  if (out.metrics.size() < kProgressMetrics) out.metrics.emplace_back(name, value);
}

class LineParser {
 public:
  explicit LineParser(std::string_view text) : in_(text) {}

  std::optional<ProgressLine> parse() {
    boosting_round();
    while (!in_.done()) {
      const char c = in_.peek();
      if (letter(c) && !word_char(in_.before())) {
        word();
      } else if (digit(c) && !word_char(in_.before()) && in_.before() != '.') {
        bar();
      } else {
        in_.skip();
      }
    }
    if (boosting_ && out_.metrics.empty()) out_.step.reset();  // any line may begin with [12]
    const bool counted = out_.step || out_.epoch;
    if (!counted) {
      std::erase_if(out_.metrics, [](const auto& m) { return !telling(lower(m.first)); });
      if (!plain_pairs_) out_.metrics.clear();
    }
    if (!counted && out_.metrics.empty()) return {};
    return std::move(out_);
  }

 private:
  // XGBoost and LightGBM: [12]	train-logloss:0.48
  void boosting_round() {
    if (!in_.take('[')) return;
    const auto round = in_.whole();
    if (round && in_.take(']') && in_.peek() == ' ') {
      out_.step = *round;
      boosting_ = true;
    } else {
      in_.back_to(0);
    }
  }

  // 45/100 before a bar or behind one: Keras puts it first, tqdm last.
  void bar() {
    const std::size_t from = in_.at();
    const char before = in_.before();
    const auto count = read_count(in_);
    if (count && count->total && in_.at() > from) {
      const bool boxed = before == '[' && out_.epoch.has_value();  // Train Epoch: 1 [640/60000
      std::size_t ahead = 0;
      while (in_.peek(ahead) == ' ') ++ahead;
      const char next = in_.peek(ahead);
      if ((ahead > 0 && (next == '[' || next == '|')) || boxed) {
        out_.step = count->of;
        out_.total_steps = count->total;
        out_.bar = true;
        return;
      }
    }
    if (in_.at() == from) in_.skip();
    while (word_char(in_.peek()) || in_.peek() == '.') in_.skip();  // 12.1it, 3s
  }

  void word() {
    const std::string_view name = in_.word();
    const std::string low = lower(name);
    const std::size_t after = in_.at();
    if (in_.peek() == '\'' || in_.peek() == '"') in_.skip();
    in_.spaces();
    const char mark = in_.peek();
    const bool assigned = mark == '=' || mark == ':';
    if (assigned) in_.skip();
    const bool tight = assigned && in_.peek() != ' ';
    in_.spaces();
    if (assigned && (in_.peek() == '\'' || in_.peek() == '"')) in_.skip();
    if (step_word(low) || epoch_word(low)) {
      if (!count(low)) in_.back_to(after);
      return;
    }
    if (!assigned) return in_.back_to(after);
    const std::size_t before = in_.at();
    const std::string_view value = in_.number();
    const bool address = mark == ':' && tight && !value.contains('.');  // host:2222
    if (value.empty() || word_char(in_.peek()) || in_.peek() == ':' || address) {
      return in_.back_to(value.empty() ? after : before);
    }
    if (mark == '=') plain_pairs_ = true;
    if (total_steps_word(low) || total_epochs_word(low)) return total(low, value);
    if (!no_metric(low)) take_metric(out_, name, value);
  }

  bool count(const std::string& low) {
    const auto found = read_count(in_);
    if (!found || letter(in_.peek())) return false;
    if (epoch_word(low)) {
      if (low == "epochs" && !found->total) return out_.total_epochs = found->of, true;
      out_.epoch = found->of;
      if (found->total) out_.total_epochs = found->total;
    } else if (!out_.bar && (low != "steps" || found->total)) {
      out_.step = found->of;
      if (found->total) out_.total_steps = found->total;
    }
    return true;
  }

  void total(const std::string& low, std::string_view value) {
    std::int64_t all = 0;
    const char* end = value.data() + value.size();
    if (std::from_chars(value.data(), end, all).ptr != end || all <= 0) return;
    (total_epochs_word(low) ? out_.total_epochs : out_.total_steps) = all;
  }

  Reader in_;
  ProgressLine out_ = {};
  bool plain_pairs_ = false;  // there was a name=value
  bool boosting_ = false;
};

std::optional<std::int64_t> whole_number(const json::value& value) {
  if (value.is_int64() && value.get_int64() >= 0) return value.get_int64();
  if (value.is_double() && value.get_double() >= 0 && value.get_double() < 1e15) {
    return static_cast<std::int64_t>(value.get_double());
  }
  return {};
}

// As short as it can be said: 0.25, where JSON's writer would say 2.5E-1.
std::string number_text(const json::value& value) {
  return value.is_double() ? fmt::format("{}", value.get_double()) : json::serialize(value);
}

bool is_number(const json::value& value) {
  return value.is_int64() || value.is_uint64() || value.is_double();
}

// {"step": 10, "total_steps": 100, "loss": 0.3, "metrics": {"accuracy": 0.9}}
std::optional<ProgressLine> parse_object(const json::object& object) {
  ProgressLine out;
  bool named = false;
  for (const auto& member : object) {
    const std::string_view name = member.key();
    const std::string low = lower(name);
    const json::value& value = member.value();
    const auto whole = whole_number(value);
    if (low == "metrics" && value.is_object()) {
      named = true;
      for (const auto& metric : value.get_object()) {
        if (is_number(metric.value())) {
          take_metric(out, metric.key(), number_text(metric.value()));
        }
      }
    } else if (whole && low == "epochs") {
      out.total_epochs = whole;
    } else if (whole && total_steps_word(low)) {
      out.total_steps = whole;
    } else if (whole && total_epochs_word(low)) {
      out.total_epochs = whole;
    } else if (whole && epoch_word(low)) {
      out.epoch = whole;
    } else if (whole && step_word(low)) {
      out.step = whole;
    } else if (is_number(value) && !no_metric(low)) {
      take_metric(out, name, number_text(value));
    }
  }
  if (!out.step && !out.epoch && !named) return {};
  if (out.step && out.total_steps && *out.total_steps < *out.step) out.total_steps.reset();
  if (out.epoch && out.total_epochs && *out.total_epochs < *out.epoch) out.total_epochs.reset();
  return out;
}

}  // namespace

std::optional<ProgressLine> parse_progress(std::string_view line) {
  const std::string_view trimmed = trim(line);
  if (trimmed.starts_with('{') && trimmed.size() <= kProgressLineBytes) {
    if (const auto parsed = json::parse(trimmed); parsed && parsed->is_object()) {
      return parse_object(parsed->get_object());
    }
  }
  const std::string text = plain(trimmed);
  return LineParser(text).parse();
}

}  // namespace skiff::node
