// Label selectors and field selectors: what ?labelSelector= and ?fieldSelector= say, and what
// spec.selector of an object says.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace skiff {

// All requirements must hold; an empty selector matches everything.
class LabelSelector {
 public:
  enum class Op { kIn, kNotIn, kExists, kAbsent, kGreater, kLess };
  struct Requirement {
    std::string key = {};
    Op op = Op::kExists;
    std::vector<std::string> values = {};
  };

  // `a=b, c!=d, e in (x,y), f notin (z), g, !h, i>5`. An object without the key satisfies != and
  // notin.
  static Result<LabelSelector> parse(std::string_view text);
  // metav1.LabelSelector: matchLabels and matchExpressions.
  static Result<LabelSelector> from_object(const json::value& selector);
  // A plain map, as spec.selector of a Service.
  static LabelSelector from_map(const json::object& labels);

  bool matches(const json::object& labels) const;
  // By metadata.labels.
  bool matches_object(const json::value& object) const;
  bool empty() const { return requirements_.empty(); }
  const std::vector<Requirement>& requirements() const { return requirements_; }
  // The form parse() reads.
  std::string text() const;

 private:
  std::vector<Requirement> requirements_;
};

// `metadata.name=a,status.phase!=Running`. Which paths a kind offers is for the caller to check.
class FieldSelector {
 public:
  struct Term {
    std::string path = {};
    std::string value = {};
    bool negated = false;
  };

  static Result<FieldSelector> parse(std::string_view text);

  // `value_of(path)` gives the text of the field; an absent field is empty text.
  template <class ValueOf>
  bool matches(ValueOf&& value_of) const {
    for (const Term& term : terms_) {
      if ((std::string_view(value_of(std::string_view(term.path))) == term.value) == term.negated) {
        return false;
      }
    }
    return true;
  }
  // The path read as object keys; a number or boolean gives its text, what is absent none.
  static std::string text_at(const json::value& object, std::string_view path);
  bool matches_object(const json::value& object) const;
  bool empty() const { return terms_.empty(); }
  const std::vector<Term>& terms() const { return terms_; }

 private:
  std::vector<Term> terms_;
};

}  // namespace skiff
