#include "image/registry.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <thread>

#include "base/base64.h"
#include "base/strings.h"
#include "image/images.h"
#include "image/test_image.h"
#include "net/pki.h"
#include "net/server.h"

namespace skiff::image {
namespace {

using testing::digest_of;
using testing::file;
using testing::make_image;
using testing::tar;
using testing::TestImage;

// A registry in this process, with the quirks that real ones have.
class FakeRegistry {
 public:
  enum class Auth { kNone, kBasic, kBearer };

  FakeRegistry() {
    auto server = net::Server::start(
        {.listeners = {{}, {}}}, [this](const http::Request& request) { return answer(request); });
    EXPECT_TRUE(server);
    server_ = std::move(*server);
  }

  std::string address() const { return fmt::format("localhost:{}", server_->port(0)); }
  std::string other() const { return fmt::format("http://localhost:{}", server_->port(1)); }

  void add(const TestImage& image, const std::string& tag) {
    const std::lock_guard lock(mutex_);
    for (const std::string& layer : image.layers) blobs_[digest_of(layer)] = layer;
    blobs_[digest_of(image.config)] = image.config;
    manifests_[tag] = manifests_[digest_of(image.manifest)] = image.manifest;
  }
  void add_document(const std::string& tag, const std::string& text) {
    const std::lock_guard lock(mutex_);
    manifests_[tag] = manifests_[digest_of(text)] = text;
  }
  void corrupt(const std::string& digest, std::string bytes) {
    const std::lock_guard lock(mutex_);
    blobs_[digest] = std::move(bytes);
  }
  void add_user(const std::string& name, const std::string& password) {
    const std::lock_guard lock(mutex_);
    users_[name] = password;
  }

  std::atomic<Auth> auth = Auth::kNone;
  std::atomic<bool> redirect_blobs = false;
  std::atomic<bool> ranges = true;
  std::atomic<int> broken_downloads = 0;  // so many answers break off
  std::atomic<int> status = 0;            // answered to everything, where set
  std::atomic<int> blob_requests = 0;
  std::atomic<int> resumed = 0;
  std::atomic<int> tokens_given = 0;
  std::atomic<int> posts = 0;
  std::atomic<bool> leaked = false;  // our secrets came to where they do not belong
  std::atomic<int> delay_ms = 0;

 private:
  // Says how long it is and then hangs up too early.
  class BreaksOff : public http::Stream {
   public:
    explicit BreaksOff(std::string text) : text_(std::move(text)) {}
    bool pull(std::string& out, std::function<void()>) override {
      out = std::move(text_);
      return false;
    }

   private:
    std::string text_;
  };

  http::Response refuse(int code, std::string_view word) const {
    return {.status = code,
            .body = fmt::format(R"({{"errors":[{{"code":"X","message":"{}"}}]}})", word)};
  }

  bool known(std::string_view header) {
    const std::lock_guard lock(mutex_);
    for (const auto& [name, password] : users_) {
      if (header == "Basic " + base64::encode(name + ":" + password)) return true;
    }
    return false;
  }

  bool anybody_known() {
    const std::lock_guard lock(mutex_);
    return !users_.empty();
  }

  http::Response token(const http::Request& request) {
    const auto header = http::header(request.headers, "Authorization");
    if (anybody_known() && !known(header)) return refuse(401, "who are you");
    const auto url = http::parse_url(request.target);
    EXPECT_EQ(url->param("service"), "fake");
    EXPECT_EQ(url->param("scope"), "repository:team/box:pull");
    ++tokens_given;
    return {.body = R"({"token":"good"})"};
  }

  http::Response blob(const http::Request& request, const std::string& digest) {
    ++blob_requests;
    const std::lock_guard lock(mutex_);
    const auto found = blobs_.find(digest);
    if (found == blobs_.end()) return refuse(404, "blob unknown");
    std::string body = found->second;
    http::Response out;
    const std::string range(http::header(request.headers, "Range"));
    if (ranges && !range.empty()) {
      const auto offset = static_cast<std::size_t>(std::stoll(range.substr(6)));
      body = body.substr(std::min(offset, body.size()));
      out.status = 206;
      ++resumed;
    }
    if (broken_downloads > 0 && body.size() > 1000) {
      --broken_downloads;
      out.stream = std::make_unique<BreaksOff>(body.substr(0, body.size() / 2));
    } else {
      out.body = std::move(body);
    }
    return out;
  }

  http::Response answer(const http::Request& request) {
    std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms));
    if (request.method != "GET") ++posts;
    if (status != 0) return refuse(status, "as told");
    if (request.target.starts_with("/token")) return token(request);
    const auto header = http::header(request.headers, "Authorization");
    if (request.target.starts_with("/elsewhere/")) {
      if (!header.empty()) leaked = true;
      return blob(request, "sha256:" + request.target.substr(request.target.rfind('/') + 1));
    }
    if (auth == Auth::kBasic && !known(header)) {
      auto out = refuse(401, "authentication required");
      out.headers.emplace_back("WWW-Authenticate", R"(Basic realm="fake")");
      return out;
    }
    if (auth == Auth::kBearer && header != "Bearer good") {
      auto out = refuse(401, "authentication required");
      out.headers.emplace_back(
          "WWW-Authenticate",
          fmt::format(R"(Bearer realm="{}/token",service="fake",scope="repository:team/box:pull")",
                      other()));
      return out;
    }
    const std::string last = request.target.substr(request.target.rfind('/') + 1);
    if (request.target.starts_with("/v2/team/box/manifests/")) {
      const std::lock_guard lock(mutex_);
      const auto found = manifests_.find(last);
      return found == manifests_.end() ? refuse(404, "manifest unknown")
                                       : http::Response{.body = found->second};
    }
    if (!request.target.starts_with("/v2/team/box/blobs/")) return refuse(404, "no such place");
    if (redirect_blobs) {
      return {.status = 307,
              .headers = {{"Location", fmt::format("{}/elsewhere/{}", other(), last.substr(7))}}};
    }
    return blob(request, last);
  }

  std::mutex mutex_;
  std::map<std::string, std::string> blobs_, manifests_;
  std::map<std::string, std::string> users_;
  std::unique_ptr<net::Server> server_;
};

class RegistryTest : public ::testing::Test {
 protected:
  RegistryTest() {
    auto opened = Images::open(folder_.at("images"));
    EXPECT_TRUE(opened);
    images_ = std::move(*opened);
    image_ = make_image({tar({file("a", std::string(200000, 'x'))}), tar({file("b", "2")})},
                        {{"Cmd", json::array{"/a"}}});
    registry_.add(image_, "v1");
  }
  Reference reference(const std::string& tail = ":v1") const {
    return *parse_reference(registry_.address() + "/team/box" + tail);
  }
  Result<StoredImage> pull(const std::string& tail = ":v1", std::vector<Credentials> keys = {}) {
    return images_->pull({.reference = reference(tail), .credentials = std::move(keys)});
  }

  testing::TemporaryFolder folder_;
  FakeRegistry registry_;
  std::unique_ptr<Images> images_;
  TestImage image_;
};

TEST_F(RegistryTest, AnImageIsPulledByTagAndByDigest) {
  const auto pulled = pull();
  ASSERT_TRUE(pulled) << pulled.error().message;
  EXPECT_EQ(pulled->manifest, digest_of(image_.manifest));
  EXPECT_EQ(images_->store().read(*pulled)->config.cmd, std::vector<std::string>{"/a"});
  EXPECT_TRUE(images_->store().find(reference()));
  const auto fixed = pull("@" + digest_of(image_.manifest));
  ASSERT_TRUE(fixed) << fixed.error().message;
  EXPECT_EQ(fixed->name, reference("@" + digest_of(image_.manifest)).text());
}

TEST_F(RegistryTest, WhatIsHereIsNotFetchedAgain) {
  ASSERT_TRUE(pull());
  EXPECT_EQ(registry_.blob_requests, 3);
  ASSERT_TRUE(pull());
  EXPECT_EQ(registry_.blob_requests, 3);
}

TEST_F(RegistryTest, AnIndexIsFollowedToThisPlatform) {
  const auto entry = [](const std::string& manifest, std::string_view architecture) {
    json::object out = to_json(Descriptor{.media_type = std::string(kDockerManifest),
                                          .digest = digest_of(manifest),
                                          .size = static_cast<std::int64_t>(manifest.size())});
    out["platform"] = {{"os", "linux"}, {"architecture", architecture}};
    return out;
  };
  const std::string index = json::serialize(json::object{
      {"mediaType", kDockerIndex},
      {"manifests",
       json::array{entry("{}", "s390x"), entry(image_.manifest, this_platform().architecture)}}});
  registry_.add_document("many", index);
  const auto pulled = pull(":many");
  ASSERT_TRUE(pulled) << pulled.error().message;
  EXPECT_EQ(pulled->target, digest_of(index));
  EXPECT_EQ(pulled->manifest, digest_of(image_.manifest));
}

TEST_F(RegistryTest, BasicPasswordsAreTriedInTurn) {
  registry_.auth = FakeRegistry::Auth::kBasic;
  registry_.add_user("ada", "sesame");
  const auto nobody = pull();
  ASSERT_FALSE(nobody);
  EXPECT_EQ(nobody.error().code, Code::kUnauthorized);
  EXPECT_NE(nobody.error().message.find("imagePullSecrets"), std::string::npos);
  EXPECT_FALSE(pull(":v1", {{"ada", "wrong", ""}}));
  EXPECT_TRUE(pull(":v1", {{"ada", "wrong", ""}, {"ada", "sesame", ""}}));
}

TEST_F(RegistryTest, ATokenIsFetchedOnceForAllRequests) {
  registry_.auth = FakeRegistry::Auth::kBearer;
  ASSERT_TRUE(pull());
  EXPECT_EQ(registry_.tokens_given, 1);
}

TEST_F(RegistryTest, ATokenMayNeedAPassword) {
  registry_.auth = FakeRegistry::Auth::kBearer;
  registry_.add_user("ada", "sesame");
  EXPECT_FALSE(pull());
  EXPECT_TRUE(pull(":v1", {{"ada", "sesame", ""}}));
}

TEST_F(RegistryTest, RedirectsAreFollowedWithoutOurSecrets) {
  registry_.auth = FakeRegistry::Auth::kBasic;
  registry_.add_user("ada", "sesame");
  registry_.redirect_blobs = true;
  ASSERT_TRUE(pull(":v1", {{"ada", "sesame", ""}}));
  EXPECT_FALSE(registry_.leaked);
}

TEST_F(RegistryTest, ABrokenDownloadIsResumed) {
  registry_.broken_downloads = 2;
  const auto pulled = pull();
  ASSERT_TRUE(pulled) << pulled.error().message;
  EXPECT_EQ(registry_.resumed, 2);
}

TEST_F(RegistryTest, WithoutRangesItIsBegunAgain) {
  registry_.broken_downloads = 1;
  registry_.ranges = false;
  const auto pulled = pull();
  ASSERT_TRUE(pulled) << pulled.error().message;
  EXPECT_EQ(registry_.resumed, 0);
}

TEST_F(RegistryTest, ADownloadThatNeverEndsWellIsGivenUp) {
  registry_.broken_downloads = 1000;
  registry_.ranges = false;
  EXPECT_FALSE(pull());
  EXPECT_FALSE(images_->store().find(reference()));
}

TEST_F(RegistryTest, WrongBytesAreNotBelieved) {
  const std::string& layer = image_.layers[1];
  registry_.corrupt(digest_of(layer), std::string(layer.size(), 'z'));
  const auto pulled = pull();
  ASSERT_FALSE(pulled);
  EXPECT_NE(pulled.error().message.find("came instead of"), std::string::npos);
  EXPECT_FALSE(images_->store().has_blob(digest_of(layer)));
  registry_.corrupt(digest_of(layer), layer + "more");
  EXPECT_FALSE(pull());
  registry_.add_document("wrong", "{}");
  registry_.add_document(digest_of(image_.manifest), "{}");
  EXPECT_NE(pull("@" + digest_of(image_.manifest)).error().message.find("sent a manifest"),
            std::string::npos);
}

TEST_F(RegistryTest, ErrorsSayWhatToDo) {
  EXPECT_EQ(pull(":v9").error().code, Code::kNotFound);
  EXPECT_NE(pull(":v9").error().message.find("not found: manifest unknown"), std::string::npos);
  registry_.status = 429;
  EXPECT_EQ(pull().error().code, Code::kTooManyRequests);
  registry_.status = 503;
  EXPECT_EQ(pull().error().code, Code::kServiceUnavailable);
  registry_.status = 403;
  EXPECT_EQ(pull().error().code, Code::kForbidden);
  const auto nobody = images_->pull({.reference = *parse_reference("localhost:1/x")});
  ASSERT_FALSE(nobody);
  EXPECT_NE(nobody.error().message.find("localhost:1"), std::string::npos)
      << nobody.error().message;
}

TEST_F(RegistryTest, ManyWhoWantOneImageFetchItOnce) {
  registry_.delay_ms = 50;
  std::vector<std::thread> threads;
  std::atomic<int> good = 0;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      if (pull()) ++good;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 8);
  EXPECT_EQ(registry_.blob_requests, 3);
}

TEST_F(RegistryTest, WhoeverIsAskedToStopStops) {
  registry_.delay_ms = 2000;
  std::stop_source stop;
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    stop.request_stop();
  });
  EXPECT_FALSE(images_->pull({.reference = reference()}, stop.get_token()));
  other.join();
}

TEST_F(RegistryTest, ProgressEndsWithEverything) {
  Progress last;
  ASSERT_TRUE(images_->pull({.reference = reference(), .progress = [&](const Progress& progress) {
                               EXPECT_GE(progress.done, last.done);
                               last = progress;
                             }}));
  EXPECT_EQ(last.done, last.total);
  EXPECT_GT(last.total, 200000);
}

// A registry far away, over TLS: its address leads to a server of this process.
class FarRegistry {
 public:
  static constexpr char kAddress[] = "203.0.113.7";

  explicit FarRegistry(http::Handler answer) {
    const auto authority = net::make_authority("far", std::chrono::days(1));
    const auto identity =
        net::issue_server(*authority, kAddress, {.addresses = {kAddress}}, std::chrono::days(1));
    const std::string file = folder_.at("ca.pem");
    std::ofstream(file) << authority->certificate_pem;
    ::setenv("SSL_CERT_FILE", file.c_str(), 1);
    auto server = net::Server::start({.listeners = {{.tls = true}},
                                      .certificate_pem = identity->certificate_pem,
                                      .key_pem = identity->key_pem},
                                     std::move(answer));
    EXPECT_TRUE(server);
    server_ = std::move(*server);
  }
  ~FarRegistry() { ::unsetenv("SSL_CERT_FILE"); }

  Result<Registry::Document> ask(const std::optional<Credentials>& credentials) {
    const auto reference = parse_reference(std::string(kAddress) + "/team/box:v1");
    const auto registry = Registry::open(client_, *reference, credentials);
    return (*registry)->manifest("v1");
  }

 private:
  testing::TemporaryFolder folder_;
  std::unique_ptr<net::Server> server_;
  net::Client client_{[this](sockaddr_storage& to) -> Result<int> {
    auto& v4 = reinterpret_cast<sockaddr_in&>(to);
    if (to.ss_family == AF_INET && v4.sin_addr.s_addr == ::inet_addr(kAddress)) {
      v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      v4.sin_port = htons(server_->port(0));
    }
    return ::socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  }};
};

TEST(FarRegistryTest, RegistryStopsSkiffRealmsAndRedirectsOnThisMachineAreNotAsked) {
  std::atomic<int> visits = 0;
  auto door = net::Server::start({.listeners = {{}}}, [&](const http::Request&) {
    ++visits;
    return http::Response{.body = R"({"token":"t"})"};
  });
  ASSERT_TRUE(door);
  std::string host, location;
  FarRegistry registry([&](const http::Request&) {
    http::Response out{.status = location.empty() ? 401 : 307};
    out.headers.emplace_back(
        "WWW-Authenticate",
        fmt::format(R"(Bearer realm="http://{}:{}/skiff/v1/stop")", host, (*door)->port(0)));
    if (!location.empty()) out.headers.emplace_back("Location", location);
    return out;
  });
  const Credentials keys[] = {{.username = "a", .password = "b"}, {.identity_token = "c"}};
  for (const char* name : {"127.0.0.1", "localhost", "[::1]", "0.0.0.0", "[::ffff:127.0.0.1]",
                           "2130706433", "169.254.169.254", "[fe80::1]", "[::]"}) {
    host = name;
    for (const Credentials& key : keys) {
      const auto answer = registry.ask(key);
      ASSERT_FALSE(answer) << name;
      EXPECT_NE(answer.error().message.find("leads to an address of this machine's own"),
                std::string::npos)
          << name << ": " << answer.error().message;
    }
    location = fmt::format("https://{}:{}/skiff/v1/backup", name, (*door)->port(0));
    const auto redirected = registry.ask({});
    ASSERT_FALSE(redirected) << name;
    EXPECT_NE(redirected.error().message.find("leads to an address of this machine's own"),
              std::string::npos)
        << name << ": " << redirected.error().message;
    location.clear();
  }
  EXPECT_EQ(visits, 0);
}

TEST(FarRegistryTest, RedirectsAreFollowedOnlySoOften) {
  std::atomic<int> asked = 0;
  FarRegistry registry([&](const http::Request&) {
    ++asked;
    return http::Response{.status = 307, .headers = {{"Location", "/again"}}};
  });
  const auto answer = registry.ask({});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().message, "the registry redirects in a ring");
  EXPECT_LE(asked, 10);
}

TEST_F(RegistryTest, AnIdentityTokenIsPostedToNobodyInTheClear) {
  registry_.auth = FakeRegistry::Auth::kBearer;
  EXPECT_TRUE(pull(":v1", {{.identity_token = "secret"}}));
  EXPECT_EQ(registry_.posts, 0);
}

}  // namespace
}  // namespace skiff::image
