#include "webui/status_page.h"

#include <gtest/gtest.h>

namespace skiff::webui {
namespace {

Object object(std::string_view text) {
  return std::make_shared<const json::value>(json::parse(text).value());
}

TEST(StatusPage, ShowsStateAndWhyAPodWaits) {
  const std::string page =
      render({.version = "v1",
              .pods = {object(
                  R"({"kind":"Pod","metadata":{"name":"p"},"status":{"phase":"Pending","conditions":
                       [{"type":"PodScheduled","status":"False","message":"0/1 nodes fit"}]}})")}},
             Time{});
  EXPECT_NE(page.find("0/1 nodes fit"), std::string::npos);
  EXPECT_NE(page.find("class=wait>Pending"), std::string::npos);
}

TEST(StatusPage, TextFromOutsideCannotBecomeMarkup) {
  const std::string page = render(
      {.jobs = {object(R"({"kind":"TFJob","metadata":{"name":"<script>alert(1)</script>"}})")}},
      Time{});
  EXPECT_EQ(page.find("<script>"), std::string::npos);
  EXPECT_NE(page.find("&lt;script&gt;"), std::string::npos);
}

TEST(StatusPage, AJobThatIsCompleteIsGood) {
  const std::string page =
      render({.jobs = {object(R"({"kind":"TrainJob","metadata":{"name":"j"},"status":{"conditions":
                           [{"type":"Complete","status":"True"}]}})")}},
             Time{});
  EXPECT_NE(page.find("class=good>Complete"), std::string::npos);
}

TEST(StatusPage, LongListsAreCut) {
  Snapshot snapshot;
  for (int i = 0; i < 150; ++i)
    snapshot.pods.push_back(object(R"({"kind":"Pod","metadata":{"name":"p"}})"));
  EXPECT_NE(render(snapshot, Time{}).find("and 50 more"), std::string::npos);
}

}  // namespace
}  // namespace skiff::webui
