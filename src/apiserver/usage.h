// metrics.k8s.io/v1beta1: what is used now, as whoever runs pods measures it.
#pragma once

#include <string>

#include "apiserver/kinds.h"
#include "apiserver/routes.h"
#include "apiserver/usage_source.h"
#include "base/http.h"
#include "base/time.h"
#include "store/store.h"

namespace skiff::apiserver {

// A Go duration, as clients of this API read it: 10.25s.
std::string go_duration(Duration duration);

// True for the kinds of metrics.k8s.io, whose objects are not in the store.
bool is_usage(const ServedKind& kind);
http::Response serve_usage(const store::Store& store, const UsageSource& source,
                           const ServedKind& kind, const Route& route, const http::Request& request,
                           const http::Url& url, Time now);

}  // namespace skiff::apiserver
