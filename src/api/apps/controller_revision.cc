#include "api/apps/apps.h"
#include "api/cells.h"
#include "api/help.h"
#include "api/meta.h"
#include "base/strings.h"
#include "schema/causes.h"

namespace skiff::api {
namespace {

void set_controller_revision_defaults(json::value& object) {
  if (json::object* root = object.if_object()) default_int(*root, "revision", 0);
}

std::vector<Cause> validate_controller_revision(const json::value& object,
                                                const Admission& context) {
  Causes out;
  check_counts(object, "", {"revision"}, out);
  const json::value* data = json::find(object, {"data"});
  if (context.old != nullptr) {
    check_immutable(data, json::find(*context.old, {"data"}), "data", out);
  } else if (data == nullptr || data->is_null()) {
    out.push_back(schema::required("data", "data is mandatory"));
  } else if (!data->is_object()) {
    out.push_back(schema::required("data", "data must be a valid JSON object"));
  }
  return out;
}

std::string owner_cell(const json::value& object) {
  const json::object* owner = controller_of(object);
  if (owner == nullptr) return "<none>";
  const std::string_view version = text_in(*owner, "apiVersion");
  const std::size_t slash = version.find('/');
  std::string kind = lower(text_in(*owner, "kind"));
  if (slash != version.npos) kind += "." + std::string(version.substr(0, slash));
  return kind + "/" + std::string(text_in(*owner, "name"));
}

json::array controller_revision_cells(const json::value& object, std::int64_t now_s) {
  return {json::string(owner_cell(object)), count(object, {"revision"}),
          json::string(age_cell(object, now_s))};
}

}  // namespace

Kind controller_revision_kind() {
  return {.resource = {"apps", "v1", "controllerrevisions", "ControllerRevision", true},
          .singular = "controllerrevision",
          .has_generation = false,
          .schema = "io.k8s.api.apps.v1.ControllerRevision",
          .columns = {{"Controller", "string", "", 0, "Controller of the object"},
                      {"Revision", "string", "", 0,
                       "revision indicates the revision of the state represented by Data."},
                      {"Age", "string", "", 0, std::string(kAgeHelp)}},
          .set_defaults = set_controller_revision_defaults,
          .validate = validate_controller_revision,
          .cells = controller_revision_cells};
}

}  // namespace skiff::api
