#include "apiserver/streams/spdy.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include "apiserver/streams/testing/clients.h"

namespace skiff::apiserver::spdy {
namespace {

using testing::SpdyClient;

TEST(Spdy, DictionaryIsTheOneOfTheDraft) { EXPECT_EQ(dictionary().size(), 1423U); }

TEST(Spdy, StreamsOpenAndCarryDataHoweverTheBytesArrive) {
  SpdyClient client;
  Writer writer;
  const std::string bytes = client.open(1, {{"streamtype", "error"}}) +
                            client.open(3, {{"streamtype", "stdin"}, {"x", ""}}) +
                            writer.data(3, "hello", false) + writer.data(3, "", true) +
                            writer.pong(7);
  for (const std::size_t piece : {1U, 3U, 1000U}) {
    Reader reader;
    std::vector<Frame> frames;
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      ASSERT_TRUE(reader.take(std::string_view(bytes).substr(at, piece), frames));
    }
    ASSERT_EQ(frames.size(), 5U);
    EXPECT_EQ(frames[0].kind, Frame::Kind::kOpen);
    EXPECT_EQ(frames[0].headers, (Headers{{"streamtype", "error"}}));
    EXPECT_EQ(frames[1].id, 3U);
    EXPECT_EQ(frames[1].headers.at("streamtype"), "stdin");
    EXPECT_EQ(frames[2].bytes, "hello");
    EXPECT_FALSE(frames[2].last);
    EXPECT_TRUE(frames[3].last);
    EXPECT_EQ(frames[4].kind, Frame::Kind::kPing);
    EXPECT_EQ(frames[4].id, 7U);
  }
}

TEST(Spdy, RefusesWhatCannotBeAFrame) {
  const auto refused = [](std::string_view bytes) {
    Reader reader;
    std::vector<Frame> frames;
    return !reader.take(bytes, frames);
  };
  EXPECT_TRUE(refused(std::string("\x80\x02\x00\x01\x00\x00\x00\x00", 8))) << "version 2";
  EXPECT_TRUE(refused(std::string("\x00\x00\x00\x01\x00\xff\xff\xff", 8))) << "too long";
  EXPECT_TRUE(refused(std::string("\x80\x03\x00\x01\x00\x00\x00\x02xx", 10))) << "cut off";
  EXPECT_TRUE(
      refused(std::string("\x80\x03\x00\x01\x00\x00\x00\x0e\x00\x00\x00\x01\x00\x00\x00"
                          "\x00\x00\x00junk",
                          22)))
      << "no zlib";
  SpdyClient client;
  EXPECT_TRUE(refused(client.open(1, {{"bomb", std::string(1'000'000, 'x')}}))) << "a bomb";
}

TEST(Spdy, RepliesCanBeReadWithTheSameDictionary) {
  Writer writer;
  const std::string first = writer.reply(1), second = writer.reply(3);
  EXPECT_EQ(first.substr(0, 4), std::string("\x80\x03\x00\x02", 4));
  EXPECT_EQ(first.substr(8, 4), std::string("\x00\x00\x00\x01", 4));
  z_stream z = {};
  inflateInit(&z);
  for (const std::string& frame : {first, second}) {
    std::string block = frame.substr(12), plain(64, 'x');
    z.next_in = reinterpret_cast<Bytef*>(block.data());
    z.avail_in = static_cast<uInt>(block.size());
    z.next_out = reinterpret_cast<Bytef*>(plain.data());
    z.avail_out = 64;
    if (inflate(&z, Z_SYNC_FLUSH) == Z_NEED_DICT) {
      inflateSetDictionary(&z, reinterpret_cast<const Bytef*>(dictionary().data()),
                           static_cast<uInt>(dictionary().size()));
      inflate(&z, Z_SYNC_FLUSH);
    }
    EXPECT_EQ(plain.substr(0, 64 - z.avail_out), std::string(4, '\0'));
  }
  inflateEnd(&z);
}

}  // namespace
}  // namespace skiff::apiserver::spdy
