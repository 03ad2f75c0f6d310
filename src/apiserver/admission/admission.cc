#include "apiserver/admission/admission.h"

namespace skiff::apiserver {

Result<void> admit(AdmissionRequest, std::vector<std::string>&) { return {}; }

}  // namespace skiff::apiserver
