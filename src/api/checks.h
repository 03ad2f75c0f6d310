// Rules that many kinds share: label selectors, counts, fields that may not change.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace skiff::api {

using Causes = std::vector<Cause>;
using Path = std::initializer_list<std::string_view>;

// The object under `key`, made where absent; null where something else stands there, which the
// schema will refuse.
json::object* object_in(json::object& o, std::string_view key, bool make = true);

// The value at the path; an empty object where absent.
const json::value& value_at(const json::value& object, Path path);

// The text under `key`; empty where it is none.
std::string_view text_in(const json::object& o, std::string_view key);

// A value as the Kubernetes server writes it in a sentence: keys of maps sorted, null for nothing.
json::value shown_map(const json::object& map);
json::value shown_selector(const json::value* selector);

// Each named field of `at` that is a number must not be negative. Absent is 0.
void check_counts(const json::value& at, std::string_view path, Path fields, Causes& out);
void check_labels(const json::object& labels, std::string_view path, Causes& out);
void check_annotations(const json::object& annotations, std::string_view path, Causes& out);
// metav1.LabelSelector; null is allowed.
void check_label_selector(const json::value* selector, std::string_view path, Causes& out);
// `path` is that of the field, `now` and `old` its values; null: absent.
void check_immutable(const json::value* now, const json::value* old, std::string path, Causes& out);
// An integer or a percentage such as 25%.
void check_int_or_percent(const json::value& v, const std::string& path, Causes& out);
void check_at_most_100_percent(const json::value& v, const std::string& path, Causes& out);
// 25 for 25 and for 25%; 0 for anything that is neither.
std::int64_t int_or_percent(const json::value& v);
// acme.io/foo
void check_domain_path(std::string_view text, const std::string& path, Causes& out);
// The error's sentence is one of `messages` for an unsupported choice; see schema::unsupported.
bool is_one_of(std::string_view text, std::initializer_list<std::string_view> choices);

// Whether the labels fit the selector; nothing where the selector cannot be read. An absent
// selector fits nothing, an empty one everything.
std::optional<bool> selects(const json::value* selector, const json::object& labels);

// kubectl's cells.
json::string selector_cell(const json::value* selector);  // a=b,c in (d), or <none>
json::string names_cell(const json::value& pod_spec);     // names of the containers
json::string images_cell(const json::value& pod_spec);
std::int64_t count(const json::value& object, Path path);  // 0 where absent

// "metadata.name: this is used in Pod names ...", where the name is no DNS label.
void warn_of_pod_names(const json::value& object, std::vector<std::string>& out,
                       std::string_view used_in = "Pod names and hostnames");

}  // namespace skiff::api
