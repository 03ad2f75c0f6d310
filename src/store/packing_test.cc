#include "store/packing.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <thread>

#include "store/pack_keeper.h"

namespace skiff::store {
namespace {

std::string event(int n) {
  return fmt::format(R"({{"apiVersion":"v1","kind":"Event","metadata":{{"name":"e-{0}",)"
                     R"("namespace":"default","uid":"{1:032x}"}},"reason":"Scheduled","message":)"
                     R"("Successfully assigned default/pod-{0} to node-{2}","type":"Normal",)"
                     R"("involvedObject":{{"kind":"Pod","name":"pod-{0}"}}}})",
                     n, n * 2654435761U, n % 7);
}

// Bytes that resemble nothing, the same in every run.
std::string noise(std::uint64_t seed, std::size_t size) {
  std::string out;
  for (; out.size() < size; seed = seed * 6364136223846793005U + 1442695040888963407U) {
    out += static_cast<char>(seed >> 56);
  }
  return out;
}

std::shared_ptr<const Dictionary> dictionary() {
  std::vector<std::string> texts;
  for (int i = 0; i < 8; ++i) texts.push_back(event(i));
  return std::make_shared<const Dictionary>(
      std::vector<std::string_view>(texts.begin(), texts.end()));
}

std::vector<EntryPtr> entries(int from, int until) {
  std::vector<EntryPtr> out;
  for (int i = from; i < until; ++i) {
    const Revision revision = static_cast<Revision>(i) + 1;
    out.push_back(std::make_shared<const Entry>(Key{.resource = "events"}, revision, event(i)));
  }
  return out;
}

std::size_t packed(const std::vector<EntryPtr>& all) {
  return static_cast<std::size_t>(std::ranges::count_if(all, [](auto& e) { return e->packed(); }));
}

TEST(Packing, MakesLittleOfWhatResemblesTheDictionaryAndGivesItBack) {
  Packer packer(dictionary());
  for (int i = 100; i < 200; ++i) {
    const std::string text = event(i);
    const std::string packed(packer.pack(text));
    EXPECT_LT(packed.size() * 3, text.size());
    std::string back(text.size(), ' ');
    packer.dictionary()->unpack(packed, back.data(), back.size());
    EXPECT_EQ(back, text);
  }
}

TEST(Packing, OfAnyTextAndAnyDictionary) {
  for (const std::string& sample : {std::string(), noise(3, 100'000), std::string(50, 'x')}) {
    Packer packer(std::make_shared<const Dictionary>(std::vector<std::string_view>{sample}));
    for (const std::string& text : {std::string(), noise(7, 300'000), sample, event(1)}) {
      const std::string packed(packer.pack(text));
      std::string back(text.size(), ' ');
      packer.dictionary()->unpack(packed, back.data(), back.size());
      EXPECT_EQ(back, text);
    }
  }
}

TEST(Packing, TheHeadIsWhatAllSamplesBeginWith) {
  EXPECT_EQ(Dictionary({"abcd", "abx", "abcy"}).head(), "ab");
  EXPECT_EQ(Dictionary({"abc", "x"}).head(), "");
  EXPECT_EQ(Dictionary({"abc", "ab"}).head(), "ab");
}

TEST(PackedEntry, SaysTheSame) {
  Packer packer(dictionary());
  const Entry entry({.resource = "events"}, 5, event(77));
  const Text before = entry.text();
  EXPECT_LT(entry.pack(&packer), entry.size() / 3);
  EXPECT_TRUE(entry.packed());
  EXPECT_EQ(entry.text(), event(77));
  EXPECT_EQ(before, event(77)) << "who held it reads on";
  EXPECT_EQ(entry.size(), event(77).size());
  EXPECT_EQ(json::serialize(*entry.value()), event(77));
  EXPECT_EQ(entry.pack(&packer), entry.pack(nullptr)) << "once is enough";
  EXPECT_EQ(entry.text(), event(77));
}

TEST(PackedEntry, KnowsHowItBegins) {
  Packer packer(dictionary());
  const Entry alike({.resource = "events"}, 5, event(77));
  const Entry other({.resource = "events"}, 6, R"({"apiVersion":"v2",)" + event(77).substr(1));
  for (const Entry* entry : {&alike, &other}) {
    for (const bool later : {false, true}) {
      if (later) entry->pack(&packer);
      EXPECT_EQ(entry->packed(), later);
      EXPECT_EQ(entry->starts_with(R"({"apiVersion":"v1")"), entry == &alike);
      EXPECT_EQ(entry->starts_with(R"({"apiVersion":"v2")"), entry == &other);
      EXPECT_TRUE(entry->starts_with(entry->text().view()));
      EXPECT_FALSE(entry->starts_with(entry->text().str() + "x"));
    }
  }
}

TEST(PackedEntry, WhatGainsNothingStaysPlain) {
  Packer packer(dictionary());
  for (const std::string& text : {std::string("{}"), event(1).substr(0, 100), noise(5, 1'000)}) {
    const Entry entry({.resource = "events"}, 5, text);
    EXPECT_EQ(entry.pack(&packer), text.size());
    EXPECT_FALSE(entry.packed());
    EXPECT_EQ(entry.text(), text);
  }
}

TEST(PackedEntry, IsReadWhileItIsPacked) {
  const std::vector<EntryPtr> all = entries(0, 300);
  Packer packer(dictionary());
  std::vector<std::jthread> readers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&] {
      for (std::size_t n = all.size(); n-- > 0;) {
        const EntryPtr& entry = all[n];
        EXPECT_EQ(entry->text(), event(static_cast<int>(n)));
        EXPECT_TRUE(entry->starts_with(R"({"apiVersion":"v1")"));
        EXPECT_TRUE(entry->value()->is_object());
      }
    });
  }
  for (const EntryPtr& entry : all) entry->pack(&packer);
  readers.clear();
  EXPECT_EQ(packed(all), all.size());
}

TEST(PackKeeper, PacksWhenThereAreEnoughToMakeADictionaryOf) {
  PackKeeper keeper;
  const int first = PackKeeper::kFirst;
  const auto few = entries(0, first - 1);
  EXPECT_FALSE(keeper.pack("events", few));
  EXPECT_EQ(packed(few), 0U);
  EXPECT_FALSE(keeper.pack("pods", entries(0, 1))) << "each resource has its own";
  const auto one = entries(first, first + 1);
  EXPECT_TRUE(keeper.pack("events", one)) << "those before are to come again";
  EXPECT_EQ(packed(one), 1U);
  EXPECT_FALSE(keeper.pack("events", few));
  EXPECT_EQ(packed(few), few.size());
}

TEST(PackKeeper, TakesAnotherDictionaryWhereTheFirstIsOfOtherObjects) {
  PackKeeper keeper;
  std::vector<EntryPtr> strange;
  for (std::uint64_t i = 0; i < 40; ++i) {
    strange.push_back(std::make_shared<const Entry>(Key{}, i + 1, noise(i, 5'000)));
  }
  EXPECT_TRUE(keeper.pack("events", strange));
  int renewals = 0;
  for (int i = 0; i < 100; ++i) {
    renewals += keeper.pack("events", entries(i * 100, (i + 1) * 100)) ? 1 : 0;
  }
  EXPECT_EQ(renewals, 1);
  const auto last = entries(0, 1);
  keeper.pack("events", last);
  EXPECT_EQ(packed(last), 1U);
  EXPECT_EQ(last[0]->text(), event(0));
}

}  // namespace
}  // namespace skiff::store
