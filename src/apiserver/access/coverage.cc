#include "apiserver/access/coverage.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <unordered_map>

#include "base/limits.h"

namespace skiff::apiserver {
namespace {

constexpr std::string_view kEverything = "*";
// A sentence with more rights than this helps nobody.
constexpr std::size_t kShownRights = 1'000;
constexpr std::size_t kShownBytes = 64 * 1024;

// One bit for each held rule.
using Bits = std::vector<std::uint64_t>;

// Counts what a comparison costs.
class Steps {
 public:
  Result<void> take(double steps) {
    taken_ += steps;
    if (taken_ <= static_cast<double>(limits::kRuleSteps)) return {};
    return fail(Code::kForbidden,
                "the rules are too many to be compared with those that you hold; grant fewer in "
                "one role, or use \"*\"");
  }

 private:
  double taken_ = 0;  // the product of four lists fits into no integer
};

// The words of one list of the wanted rule, and which held rules match each of them.
class Words {
 public:
  Words(const std::vector<std::string>& words, std::size_t rules) : size_((rules + 63) / 64) {
    for (const std::string& word : words) {
      if (!places_.try_emplace(word, words_.size()).second) continue;
      words_.emplace_back(word);
    }
  }

  // Room for the bits, which may be much.
  Result<void> prepare(Steps& steps) {
    SKIFF_TRY(steps.take(static_cast<double>(words_.size() * size_)));
    bits_.assign(words_.size() * size_, 0);
    return {};
  }

  void match(std::string_view word, std::size_t rule) {
    if (const auto at = places_.find(word); at != places_.end()) mark(at->second, rule);
  }
  void match_all(std::size_t rule) {
    for (std::size_t i = 0; i < words_.size(); ++i) mark(i, rule);
  }
  void mark(std::size_t word, std::size_t rule) {
    bits_[word * size_ + rule / 64] |= std::uint64_t{1} << (rule % 64);
  }
  const std::vector<std::string_view>& all() const { return words_; }

  // Words that the same rules match, as places in all().
  struct Class {
    Bits rules = {};
    std::vector<std::size_t> words = {};
  };
  std::vector<Class> classes() const {
    std::map<Bits, std::vector<std::size_t>> found;
    for (std::size_t i = 0; i < words_.size(); ++i) {
      const auto first = bits_.begin() + static_cast<std::ptrdiff_t>(i * size_);
      found[Bits(first, first + static_cast<std::ptrdiff_t>(size_))].push_back(i);
    }
    std::vector<Class> out;
    for (auto& [rules, words] : found) out.push_back({rules, std::move(words)});
    return out;
  }

 private:
  std::size_t size_;
  std::vector<std::string_view> words_ = {};
  std::unordered_map<std::string_view, std::size_t> places_ = {};
  std::vector<std::uint64_t> bits_ = {};
};

Result<void> match_plain(const std::vector<std::string>& held, std::size_t rule, Words& words,
                         Steps& steps) {
  SKIFF_TRY(steps.take(static_cast<double>(held.size())));
  bool everything = false;
  for (const std::string& word : held) {
    everything = everything || word == kEverything;
    words.match(word, rule);
  }
  if (!everything) return {};
  SKIFF_TRY(steps.take(static_cast<double>(words.all().size())));
  words.match_all(rule);
  return {};
}

// "*/scale" stands for the scale of everything.
Result<void> match_resources(const std::vector<std::string>& held, std::size_t rule, Words& words,
                             Steps& steps) {
  SKIFF_TRY(match_plain(held, rule, words, steps));
  for (const std::string_view pattern : held) {
    if (!pattern.starts_with("*/")) continue;
    SKIFF_TRY(steps.take(static_cast<double>(words.all().size())));
    for (std::size_t i = 0; i < words.all().size(); ++i) {
      const std::string_view word = words.all()[i];
      const std::size_t slash = word.find('/');
      if (slash != word.npos && word.substr(slash) == pattern.substr(1)) words.mark(i, rule);
    }
  }
  return {};
}

Result<void> match_urls(const std::vector<std::string>& held, std::size_t rule, Words& words,
                        Steps& steps) {
  for (const std::string& pattern : held) {
    SKIFF_TRY(steps.take(static_cast<double>(words.all().size())));
    for (std::size_t i = 0; i < words.all().size(); ++i) {
      if (url_matches(pattern, words.all()[i])) words.mark(i, rule);
    }
  }
  return {};
}

// Without names a rule is about every object, which only a rule without names covers.
const std::vector<std::string> kAnyName = {""};

Result<void> match_names(const Rule& held, std::size_t rule, bool named, Words& words,
                         Steps& steps) {
  SKIFF_TRY(steps.take(static_cast<double>(held.names.size() + words.all().size())));
  if (held.names.empty()) words.match_all(rule);
  if (!named) return {};
  for (const std::string& name : held.names) words.match(name, rule);
  return {};
}

class Comparison {
 public:
  explicit Comparison(const std::vector<const Rule*>& held) : held_(held) {}

  Result<void> compare(const Rule& wanted) {
    if (!wanted.groups.empty() && !wanted.resources.empty()) SKIFF_TRY(resources(wanted));
    if (!wanted.urls.empty()) SKIFF_TRY(urls(wanted));
    return {};
  }
  Shortfall take() { return std::move(out_); }

 private:
  using Classes = std::vector<Words::Class>;

  Result<void> resources(const Rule& wanted) {
    Words groups(wanted.groups, held_.size()), kinds(wanted.resources, held_.size());
    Words verbs(wanted.verbs, held_.size());
    Words names(wanted.names.empty() ? kAnyName : wanted.names, held_.size());
    const std::array<Words*, 4> lists = {&groups, &kinds, &verbs, &names};
    for (Words* list : lists) SKIFF_TRY(list->prepare(steps_));
    for (std::size_t i = 0; i < held_.size(); ++i) {
      const Rule& rule = *held_[i];
      if (rule.resources.empty()) continue;
      SKIFF_TRY(match_plain(rule.groups, i, groups, steps_));
      SKIFF_TRY(match_resources(rule.resources, i, kinds, steps_));
      SKIFF_TRY(match_plain(rule.verbs, i, verbs, steps_));
      SKIFF_TRY(match_names(rule, i, !wanted.names.empty(), names, steps_));
    }
    return collect(lists, [&](const std::array<std::size_t, 4>& at) {
      Rule one{.verbs = {wanted_word(verbs, at[2])},
               .groups = {wanted_word(groups, at[0])},
               .resources = {wanted_word(kinds, at[1])}};
      if (!wanted.names.empty()) one.names = {wanted_word(names, at[3])};
      return one;
    });
  }

  Result<void> urls(const Rule& wanted) {
    Words paths(wanted.urls, held_.size()), verbs(wanted.verbs, held_.size());
    Words none(kAnyName, held_.size());
    const std::array<Words*, 4> lists = {&paths, &verbs, &none, &none};
    for (Words* list : lists) SKIFF_TRY(list->prepare(steps_));
    for (std::size_t i = 0; i < held_.size(); ++i) {
      SKIFF_TRY(match_urls(held_[i]->urls, i, paths, steps_));
      SKIFF_TRY(match_plain(held_[i]->verbs, i, verbs, steps_));
      none.match_all(i);
    }
    return collect(lists, [&](const std::array<std::size_t, 4>& at) {
      return Rule{.verbs = {wanted_word(verbs, at[1])}, .urls = {wanted_word(paths, at[0])}};
    });
  }

  static std::string wanted_word(const Words& words, std::size_t at) {
    return std::string(words.all()[at]);
  }

  // Finds the combinations of classes that no held rule matches in all four lists.
  template <class Make>
  Result<void> collect(const std::array<Words*, 4>& lists, Make make) {
    std::array<Classes, 4> classes;
    double combinations = static_cast<double>(held_.size() / 64 + 1);
    for (std::size_t i = 0; i < 4; ++i) {
      classes[i] = lists[i]->classes();
      combinations *= static_cast<double>(classes[i].size());
    }
    SKIFF_TRY(steps_.take(combinations));
    std::vector<std::array<std::size_t, 4>> found;
    for (const auto& a : classes[0]) {
      for (const auto& b : classes[1]) {
        for (const auto& c : classes[2]) {
          for (const auto& d : classes[3]) {
            if (!covered(a.rules, b.rules, c.rules, d.rules)) add(found, {&a, &b, &c, &d});
          }
        }
      }
    }
    std::ranges::sort(found);  // in the order in which the rule names them
    for (const auto& at : found) {
      if (shown_bytes_ > kShownBytes) {
        out_.more = true;
        break;
      }
      show(make(at));
    }
    return {};
  }

  static bool covered(const Bits& a, const Bits& b, const Bits& c, const Bits& d) {
    for (std::size_t i = 0; i < a.size(); ++i) {
      if ((a[i] & b[i] & c[i] & d[i]) != 0) return true;
    }
    return false;
  }

  void add(std::vector<std::array<std::size_t, 4>>& found,
           const std::array<const Words::Class*, 4>& of) {
    for (const std::size_t a : of[0]->words) {
      for (const std::size_t b : of[1]->words) {
        for (const std::size_t c : of[2]->words) {
          for (const std::size_t d : of[3]->words) {
            if (out_.rights.size() + found.size() >= kShownRights) {
              out_.more = true;
              return;
            }
            found.push_back({a, b, c, d});
          }
        }
      }
    }
  }

  void show(Rule right) {
    for (const auto* list :
         {&right.verbs, &right.groups, &right.resources, &right.names, &right.urls}) {
      for (const std::string& word : *list) shown_bytes_ += word.size();
    }
    out_.rights.push_back(std::move(right));
  }

  const std::vector<const Rule*>& held_;
  Steps steps_ = {};
  Shortfall out_ = {};
  std::size_t shown_bytes_ = 0;
};

}  // namespace

std::vector<const Rule*> pointers(const std::vector<Rule>& rules) {
  std::vector<const Rule*> out;
  for (const Rule& rule : rules) out.push_back(&rule);
  return out;
}

Result<Shortfall> missing(const std::vector<const Rule*>& held, const std::vector<Rule>& wanted) {
  Comparison comparison(held);
  for (const Rule& rule : wanted) SKIFF_TRY(comparison.compare(rule));
  return comparison.take();
}

}  // namespace skiff::apiserver
