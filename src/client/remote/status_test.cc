#include "client/remote/status.h"

#include <gtest/gtest.h>

namespace skiff::client {
namespace {

TEST(Status, BecomesTheErrorItDescribes) {
  const Error error = error_of({.status = 422, .body = R"({"kind":"Status","code":422,
    "reason":"Invalid","message":"TFJob \"a\" is invalid","details":{"name":"a",
    "group":"kubeflow.org","kind":"tfjobs","retryAfterSeconds":3,"causes":[
    {"reason":"FieldValueRequired","message":"Required value","field":"spec.x"}]}})"});
  EXPECT_EQ(error.code, Code::kInvalid);
  EXPECT_EQ(error.message, "TFJob \"a\" is invalid");
  EXPECT_EQ(error.name, "a");
  EXPECT_EQ(error.group, "kubeflow.org");
  EXPECT_EQ(error.resource, "tfjobs");
  EXPECT_EQ(error.retry_after_s, 3);
  const std::vector<Cause> causes{
      {.field = "spec.x", .reason = "FieldValueRequired", .message = "Required value"}};
  EXPECT_EQ(error.causes, causes);
}

TEST(Status, IsGuessedWhereTheServerSendsNone) {
  struct Case {
    std::string_view name;
    int status;
    std::string body;
    Code code;
    std::string_view message;
  };
  const Case cases[] = {
      {"a proxy's page", 503, "no backend\n", Code::kServiceUnavailable,
       "the server answered 503 Service Unavailable: no backend"},
      {"nothing", 401, "", Code::kUnauthorized, "the server answered 401 Unauthorized"},
      {"another object", 404, R"({"kind":"Pod"})", Code::kNotFound,
       R"(the server answered 404 Not Found: {"kind":"Pod"})"},
      {"a Status without a message", 409,
       R"({"kind":"Status","code":409,"reason":"AlreadyExists"})", Code::kAlreadyExists,
       "the server answered 409"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const Error error = error_of({.status = c.status, .body = c.body});
    EXPECT_EQ(error.code, c.code);
    EXPECT_EQ(error.message, c.message);
  }
  EXPECT_EQ(error_of({.status = 429, .headers = {{"Retry-After", "2"}}}).retry_after_s, 2);
}

TEST(Status, ASuccessIsItsBody) {
  EXPECT_EQ(body_of({.status = 201, .body = "{}"}), json::value(json::object{}));
  EXPECT_FALSE(body_of({.status = 200, .body = "<html>"}));
  EXPECT_FALSE(body_of({.status = 302, .body = "{}"}));
}

}  // namespace
}  // namespace skiff::client
