#include "image/registry.h"

#include <fmt/format.h>

#include "base/ip.h"
#include "base/strings.h"
#include "net/pki.h"

namespace skiff::image {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 15s;
constexpr int kRedirects = 5;
// Manifests are kilobytes; the distribution specification lets servers refuse more than this.
constexpr std::size_t kFetchedDocumentMax = 4 * 1024 * 1024;

bool redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

Result<std::string> body_of(net::StreamingResponse& response) {
  std::string out;
  while (true) {
    SKIFF_ASSIGN(const auto piece, response.read(kPatience));
    if (!piece) return out;
    out += *piece;
    if (out.size() > kFetchedDocumentMax) return fail(Code::kTooLarge, "the answer is too large");
  }
}

struct Place {
  net::Endpoint endpoint = {};
  std::string target = {};
};

Result<Place> parse_place(std::string_view url) {
  const std::size_t scheme = url.find("://");
  if (scheme == std::string_view::npos) {
    return fail(Code::kInvalid, fmt::format("\"{}\" is no address", url));
  }
  const std::size_t path = url.find_first_of("/?", scheme + 3);
  Place out;
  SKIFF_ASSIGN(out.endpoint, net::parse_endpoint(url.substr(0, path)));
  out.target = path == std::string_view::npos ? "/" : std::string(url.substr(path));
  if (out.target.starts_with('?')) out.target = "/" + out.target;
  return out;
}

bool same_server(const net::Endpoint& a, const net::Endpoint& b) {
  return a.host == b.host && a.port == b.port && a.tls == b.tls;
}

bool on_this_machine(std::string_view host) {
  const auto ip = parse_ip(host);
  return host == "localhost" || (ip && is_local_only(*ip));
}

// What the registry itself says: {"errors": [{"code", "message"}]}.
std::string own_words(const std::string& body) {
  const auto parsed = json::parse(body);
  if (!parsed) return "";
  for (const json::value& error : json::get_array(*parsed, {"errors"})) {
    const auto message = json::get_string(error, {"message"});
    if (!message.empty()) return std::string(message);
    return std::string(json::get_string(error, {"code"}));
  }
  return "";
}

}  // namespace

Registry::Registry(net::Client& client, Reference reference, net::Endpoint endpoint,
                   std::optional<Credentials> credentials)
    : client_(client),
      reference_(std::move(reference)),
      endpoint_(std::move(endpoint)),
      credentials_(std::move(credentials)) {}

Result<std::unique_ptr<Registry>> Registry::open(net::Client& client, const Reference& reference,
                                                 std::optional<Credentials> credentials) {
  SKIFF_ASSIGN(const RegistryAddress address, registry_address(reference.registry));
  net::Endpoint endpoint{
      .host = address.host, .port = static_cast<std::uint16_t>(address.port), .tls = address.tls};
  return std::unique_ptr<Registry>(
      new Registry(client, reference, std::move(endpoint), std::move(credentials)));
}

std::unexpected<Error> Registry::refused(int status, const std::string& body) const {
  const std::string words = own_words(body);
  const std::string tail = words.empty() ? "" : ": " + words;
  if (status == 401 || status == 403) {
    return fail(status == 401 ? Code::kUnauthorized : Code::kForbidden,
                fmt::format("pull access denied for {}, the repository does not exist or may need "
                            "authorization (imagePullSecrets){}",
                            reference_.name(), tail));
  }
  if (status == 404) {
    return fail(Code::kNotFound, fmt::format("{}: not found{}", reference_.text(), tail));
  }
  if (status == 429) {
    return fail(Code::kTooManyRequests,
                fmt::format("registry {} says that there were too many requests{}",
                            reference_.registry, tail));
  }
  return fail(Code::kServiceUnavailable,
              fmt::format("registry {} answered {} {}{}", reference_.registry, status,
                          http::status_text(status), tail));
}

std::unexpected<Error> Registry::misled(std::string_view what, std::string_view where,
                                        const Error& why) const {
  return fail(why.code, fmt::format("registry {} {} at {}: {}", reference_.registry, what, where,
                                    why.message));
}

Result<void> Registry::fetch_token(const Challenge& challenge, bool from_local) {
  SKIFF_ASSIGN(Place place, parse_place(challenge.realm));
  place.endpoint.remote_only = !from_local;
  std::string query;
  const auto add = [&](std::string_view key, std::string_view value) {
    if (value.empty()) return;
    query += fmt::format("{}{}={}", query.empty() ? "" : "&", key, http::escape(value));
  };
  const std::string scope = challenge.scope.empty()
                                ? fmt::format("repository:{}:pull", reference_.repository)
                                : challenge.scope;
  http::Request request{.headers = {{"Accept", "application/json"}}};
  add("service", challenge.service);
  add("scope", scope);
  // A password is sent to where the registry says, but never in the clear over the network.
  const bool safe = place.endpoint.tls || same_server(place.endpoint, endpoint_);
  const bool near = from_local && on_this_machine(place.endpoint.host);
  const Credentials* own = credentials_ && (safe || near) ? &*credentials_ : nullptr;
  // Tokens are fetched by GET. Registries take an identity token by POST alone, and that is sent to
  // nobody but over TLS or to the registry itself.
  if (own != nullptr && !own->identity_token.empty() && !safe) own = nullptr;
  if (own != nullptr && !own->identity_token.empty()) {
    add("grant_type", "refresh_token");
    add("refresh_token", own->identity_token);
    add("client_id", "skiff");
    request.method = "POST";
    request.body = query;
    request.headers.emplace_back("Content-Type", "application/x-www-form-urlencoded");
    request.target = place.target;
  } else {
    const char* joint = place.target.find('?') == std::string::npos ? "?" : "&";
    request.target = place.target + joint + query;
    if (own != nullptr) request.headers.emplace_back("Authorization", basic_header(*own));
  }
  const auto sent = client_.send(place.endpoint, request, kPatience);
  if (!sent) return misled("wants a token fetched", challenge.realm, sent.error());
  const http::Response& answer = *sent;
  if (answer.status != 200) return refused(answer.status, answer.body);
  SKIFF_ASSIGN(const json::value token, json::parse(answer.body));
  for (const char* key : {"token", "access_token"}) {
    if (const auto text = json::get_string(token, {key}); !text.empty()) {
      authorization_ = fmt::format("Bearer {}", text);
      return {};
    }
  }
  return fail(Code::kUnauthorized, fmt::format("{} gave no token", place.endpoint.host));
}

Result<void> Registry::authorize(std::string_view header, bool from_local) {
  const auto challenge = parse_challenge(header);
  if (!challenge) return refused(401, "");
  if (challenge->bearer) return fetch_token(*challenge, from_local);
  if (!credentials_) return refused(401, "");
  authorization_ = basic_header(*credentials_);
  return {};
}

Result<std::unique_ptr<net::StreamingResponse>> Registry::follow(const std::string& location,
                                                                 const http::Headers& headers,
                                                                 int hops, bool from_local) {
  if (hops > kRedirects) return fail(Code::kServiceUnavailable, "the registry redirects in a ring");
  Place place{.endpoint = endpoint_, .target = location};
  if (!location.starts_with('/')) {
    SKIFF_ASSIGN(place, parse_place(location));
  }
  // The registry itself is where its user says; others are where strangers say.
  place.endpoint.remote_only = hops > 0 && !from_local;
  if (endpoint_.tls && !place.endpoint.tls) {
    return fail(Code::kServiceUnavailable,
                fmt::format("registry {} redirects to plain HTTP", reference_.registry));
  }
  http::Request request{.target = place.target, .headers = headers};
  // Others must not see our token; the addresses of stores carry their own.
  if (same_server(place.endpoint, endpoint_) && !authorization_.empty()) {
    request.headers.emplace_back("Authorization", authorization_);
  }
  at_home_ = same_server(place.endpoint, endpoint_);
  auto opened = client_.open(place.endpoint, request, kPatience);
  if (!opened) {
    if (hops == 0) return std::unexpected(opened.error());
    return misled("redirects", location, opened.error());
  }
  auto response = std::move(*opened);
  if (!redirect(response->status())) return response;
  const std::string next(http::header(response->headers(), "Location"));
  if (next.starts_with('/') && !same_server(place.endpoint, endpoint_)) {
    const std::string origin = fmt::format(
        "{}://{}:{}", place.endpoint.tls ? "https" : "http",
        place.endpoint.host.contains(':') ? "[" + place.endpoint.host + "]" : place.endpoint.host,
        place.endpoint.port);
    return follow(origin + next, headers, hops + 1, response->local_only());
  }
  return follow(next, headers, hops + 1, response->local_only());
}

Result<std::unique_ptr<net::StreamingResponse>> Registry::get(const std::string& target,
                                                              const http::Headers& headers) {
  SKIFF_ASSIGN(auto response, follow(target, headers, 0, false));
  // Whoever the registry has redirected to is not told our password, wherever he would have it
  // sent.
  if (response->status() == 401 && at_home_) {
    const std::string challenge(http::header(response->headers(), "WWW-Authenticate"));
    SKIFF_TRY(body_of(*response));
    SKIFF_TRY(authorize(challenge, response->local_only()));
    SKIFF_ASSIGN(response, follow(target, headers, 0, false));
  }
  if (response->status() == 200 || response->status() == 206) return response;
  const auto body = body_of(*response);
  return refused(response->status(), body ? *body : "");
}

Result<Registry::Document> Registry::manifest(const std::string& wanted) {
  const http::Headers headers{{"Accept", fmt::format("{}, {}, {}, {}", kOciIndex, kDockerIndex,
                                                     kOciManifest, kDockerManifest)}};
  SKIFF_ASSIGN(const auto response,
               get(fmt::format("/v2/{}/manifests/{}", reference_.repository, wanted), headers));
  Document out;
  SKIFF_ASSIGN(out.text, body_of(*response));
  out.digest = "sha256:" + net::sha256_hex(out.text);
  if (is_digest(wanted) && out.digest != wanted) {
    return fail(Code::kInvalid, fmt::format("registry {} sent a manifest with digest {} for {}",
                                            reference_.registry, out.digest, wanted));
  }
  return out;
}

Result<Registry::Download> Registry::blob(const Descriptor& descriptor, std::int64_t offset) {
  http::Headers headers;
  if (offset > 0) headers.emplace_back("Range", fmt::format("bytes={}-", offset));
  Download out;
  SKIFF_ASSIGN(
      out.stream,
      get(fmt::format("/v2/{}/blobs/{}", reference_.repository, descriptor.digest), headers));
  out.resumed = out.stream->status() == 206;
  return out;
}

}  // namespace skiff::image
