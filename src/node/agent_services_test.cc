// When the agent leads services anew: rules that fail, that are never to be had, that somebody
// took away.
#include <atomic>
#include <functional>

#include "node/testing/agent_fixture.h"
#include "node/testing/no_runtime.h"

namespace skiff::node {
namespace {

constexpr const char* kService =
    R"({"metadata":{"name":"%","namespace":"default"},"spec":{"clusterIP":"10.96.0.7",
        "selector":{"app":"x"},"ports":[{"port":80}]}})";

std::string service_named(char name) {
  std::string out = kService;
  out[out.find('%')] = name;
  return out;
}

// Counts how often it is asked to lead services, and answers as it is told.
class LeadingRuntime : public NoRuntime {
 public:
  Result<void> lead_services(const std::vector<ServicePort>&) override {
    ++asked_;
    if (meanwhile_) meanwhile_();
    switch (answer_.load()) {
      case Answer::kWell:
        return {};
      case Answer::kFails:
        return fail(Code::kServiceUnavailable, "nft refused the rules");
      case Answer::kNever:
        return fail(Code::kNotFound, "no network");
    }
    return {};
  }
  enum class Answer { kWell, kFails, kNever };
  void answer(Answer answer) { answer_ = answer; }
  void meanwhile(std::function<void()> what) { meanwhile_ = std::move(what); }  // before the start
  int asked() const { return asked_; }

 private:
  std::function<void()> meanwhile_;
  std::atomic<Answer> answer_ = Answer::kWell;
  std::atomic<int> asked_ = 0;
};
using Answer = LeadingRuntime::Answer;

class AgentServices : public AgentTest {
 protected:
  ~AgentServices() override { agent_.reset(); }  // before what it uses

  void lead(Answer answer) {
    leading_.answer(answer);
    options_.log = [this](const std::string& line) {
      if (line.find("nft refused") != std::string::npos) ++told_;
    };
    agent_ = std::make_unique<Agent>(client_, leading_, clock_, options_);
    agent_->start();
  }

  LeadingRuntime leading_ = {};
  std::atomic<int> told_ = 0;
};

TEST_F(AgentServices, AFailureIsToldOnceAndTriedAgainUntilItGoesWell) {
  options_.services_retry = std::chrono::milliseconds(5);
  lead(Answer::kFails);
  create(kServices, service_named('a'));
  EXPECT_TRUE(eventually([&] { return leading_.asked() >= 3; }));
  EXPECT_EQ(told_, 1);
  leading_.answer(Answer::kWell);
  const int before = leading_.asked();
  EXPECT_TRUE(eventually([&] { return leading_.asked() > before; }));
}

TEST_F(AgentServices, HoweverManyAttemptsFailOneNewAttemptIsOnItsWay) {
  options_.services_retry = std::chrono::milliseconds(300);
  lead(Answer::kFails);
  for (char name = 'a'; name < 'f'; ++name) {
    const int before = leading_.asked();
    create(kServices, service_named(name));
    ASSERT_TRUE(eventually([&] { return leading_.asked() > before; }));
  }
  // Five attempts failed. A timer of each would give five in the time of one, and so on.
  const auto began = std::chrono::steady_clock::now();  // first: what is counted came later
  const int before = leading_.asked();
  EXPECT_TRUE(eventually([&] { return leading_.asked() >= before + 5; }));
  EXPECT_GE(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(2 * 300))
      << "one after another";
}

TEST_F(AgentServices, WhereThereIsNoNetworkNobodyTriesAgain) {
  options_.services_retry = std::chrono::milliseconds(1);
  options_.resync_every = std::chrono::milliseconds(1);
  // A change that comes while the answer is on its way has an attempt of its own on its way.
  leading_.meanwhile([this] {
    create(kServices, service_named('b'));
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  });
  lead(Answer::kNever);
  create(kServices, service_named('a'));
  EXPECT_TRUE(eventually([&] { return leading_.asked() >= 1; }));
  create(kServices, service_named('c'));
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  EXPECT_EQ(leading_.asked(), 1);
}

TEST_F(AgentServices, RulesAreMadeAnewNowAndThenEvenIfNothingHasChanged) {
  options_.resync_every = std::chrono::milliseconds(10);
  lead(Answer::kWell);
  create(kServices, service_named('a'));
  EXPECT_TRUE(eventually([&] { return leading_.asked() >= 3; }));
  EXPECT_EQ(told_, 0);
}

}  // namespace
}  // namespace skiff::node
