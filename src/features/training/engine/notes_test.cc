#include "features/training/engine/notes.h"

#include <gtest/gtest.h>

#include "features/training/engine/defaults.h"
#include "features/training/testing/builders.h"

namespace skiff::training {
namespace {

TEST(Notes, TellEachObjectWhileThatIsReadable) {
  std::vector<control::Note> notes;
  note_objects("SuccessfulCreatePod", "Created", "pod", {"a", "b"}, notes);
  EXPECT_EQ(notes, (std::vector<control::Note>{
                       {.reason = "SuccessfulCreatePod", .message = "Created pod: a"},
                       {.reason = "SuccessfulCreatePod", .message = "Created pod: b"}}));
}

TEST(Notes, TellManyObjectsAtOnce) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i <= kSingleNotes; ++i) names.push_back(fmt::format("p-{}", i));
  std::vector<control::Note> notes;
  note_objects("SuccessfulDeletePod", "Deleted", "pod", names, notes);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0].message, "Deleted 21 pods: p-0 to p-20");
}

TEST(Notes, TellNothingOfNothing) {
  std::vector<control::Note> notes;
  note_objects("SuccessfulCreatePod", "Created", "pod", {}, notes);
  EXPECT_TRUE(notes.empty());
}

TEST(Notes, TellAnExitCode) {
  const json::value root = testing::tfjob().role("Worker", 1).build();
  const control::Note note = exit_note(read_job(tensorflow(), root), "mnist-worker-0", 137);
  EXPECT_FALSE(note.warning);
  EXPECT_EQ(note.reason, "ExitedWithCode");
  EXPECT_EQ(note.message, "Pod: team.mnist-worker-0 exited with code 137");
}

TEST(Notes, WarnOfATemplatesOwnRestartPolicy) {
  const json::value root =
      testing::tfjob()
          .role("Worker", 1, "ExitCode")
          .role_field("Worker", "template",
                      testing::must_parse(R"({"spec":{"restartPolicy":"Always"}})"))
          .role("PS", 1)
          .build();
  std::vector<control::Note> notes;
  note_template_policies(read_job(tensorflow(), root), notes);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_TRUE(notes[0].warning);
  EXPECT_EQ(notes[0].reason, "SetPodTemplateRestartPolicy");
  EXPECT_NE(notes[0].message.find("Worker"), std::string::npos);
}

}  // namespace
}  // namespace skiff::training
