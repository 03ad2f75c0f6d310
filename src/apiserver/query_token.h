// Whose the ?token= in an address is: Skiff's, or of the program in a pod that is asked.
#pragma once

#include "base/http.h"

namespace skiff::apiserver {

// True where a ?token= would be read as the client's own: nothing that counts more says who asks.
bool token_in_query(const http::Request& request);

}  // namespace skiff::apiserver
