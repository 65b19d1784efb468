// Data that cannot be used is refused with one sentence; data that can is read as it was written.
#include <gtest/gtest.h>
#include <unistd.h>

#include "engine/data/source.hpp"
#include "engine/data/stream.hpp"
#include "tests/data/temporary.hpp"

namespace shardbook::data {
namespace {

class Files : public Temporary {
 protected:
  std::string error_of(const std::vector<std::string>& names, int vocab = 256, int sequence = 4) {
    const auto source = open({names, vocab, sequence, 1});
    return source ? "" : source.error();
  }
  // A dataset of two documents, tokens 0 to 9 as int32.
  void write_indexed(const std::string& prefix) {
    write(prefix + ".bin", bytes_of<std::int32_t>({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
    write(prefix + ".idx", index_bytes({4, 6}, 4, 4));
  }
};

TEST_F(Files, ThatAreMissingEmptyOrNoFilesAreNamed) {
  EXPECT_EQ(error_of({path("no.txt")}), "cannot read the data " + path("no.txt") + ": No such file or directory");
  EXPECT_EQ(error_of({write("empty.txt", "")}), "the data " + path("empty.txt") + " is empty");
  EXPECT_EQ(error_of({write("a.txt", "some text"), write("empty.txt", "")}), "the data " + path("empty.txt") + " is empty");
  EXPECT_EQ(error_of({path("")}), "the data " + path("") + " is a folder: name the files within it");
  EXPECT_EQ(error_of({"/dev/null"}), "the data /dev/null is no regular file, so it cannot be mapped");
  EXPECT_EQ(error_of({}), "--data names nothing: give files, or grammar, or synthetic");
  EXPECT_EQ(error_of({"grammar", "a.txt"}), "--data grammar stands alone; a file of that name is ./grammar");
}

TEST_F(Files, ThatMayNotBeReadAreNamed) {
  const std::string secret = write("secret.txt", "some text");
  std::filesystem::permissions(secret, std::filesystem::perms::none);
  // The superuser may read everything, so become nobody for a moment.
  const bool superuser = geteuid() == 0;
  const bool became_nobody = !superuser || seteuid(65534) == 0;
  const std::string error = error_of({secret});
  const bool became_superuser = !superuser || seteuid(0) == 0;
  ASSERT_TRUE(became_nobody && became_superuser);
  EXPECT_EQ(error, "cannot read the data " + secret + ": Permission denied");
}

TEST_F(Files, ThatAreTooShortForASequenceSaySo) {
  EXPECT_EQ(error_of({write("a.txt", "abcd")}),
            "the data " + path("a.txt") + " has 4 tokens, and one sequence of 4 with its targets takes 5: name more "
            "files, or choose a smaller --sequence");
  EXPECT_EQ(error_of({write("b.txt", "abcde")}), "");
}

TEST_F(Files, OfTextNeedAVocabularyOfBytes) {
  EXPECT_EQ(error_of({write("a.txt", "abcdefgh")}, 128),
            "text is read as bytes, so --data " + path("a.txt") + " needs a vocabulary of 256, not 128");
  EXPECT_EQ(error_of({"grammar"}, 255), "--data grammar is bytes, so it needs a vocabulary of 256, not 255");
}

TEST_F(Files, ThatAreNotUtf8SayFromWhichByteOn) {
  EXPECT_EQ(error_of({write("latin1.txt", "ma\361ana es otro d\355a")}),
            "the data " + path("latin1.txt") + " is not UTF-8 from byte 2 on: convert it, or name an indexed dataset as "
            "FILE.bin");
}

TEST(Utf8, TakesWhatRfc3629TakesAndNothingElse) {
  auto invalid = [](const std::string& text) {
    return first_invalid_utf8({reinterpret_cast<const unsigned char*>(text.data()), text.size()});
  };
  EXPECT_EQ(invalid("a\303\261o \342\202\254 \360\237\230\200"), -1);
  EXPECT_EQ(invalid("\355\237\277\356\200\200\364\217\277\277"), -1);  // U+D7FF, U+E000, U+10FFFF
  EXPECT_EQ(invalid("ab\200"), 2);                                     // a continuation with no beginning
  EXPECT_EQ(invalid("\300\257"), 0);                                   // overlong, two bytes
  EXPECT_EQ(invalid("x\340\237\277"), 1);                              // overlong, three bytes
  EXPECT_EQ(invalid("\360\217\277\277"), 0);                           // overlong, four bytes
  EXPECT_EQ(invalid("\355\240\200"), 0);                               // a surrogate
  EXPECT_EQ(invalid("\364\220\200\200"), 0);                           // beyond U+10FFFF
  EXPECT_EQ(invalid("abc\303"), 3);                                    // cut off at the end
  EXPECT_EQ(invalid("\342\202x"), 0);                                  // cut off in the middle
}

TEST_F(Files, OfAnIndexedDatasetAreReadAsTheyWereWritten) {
  write_indexed("set");
  for (const char* name : {"set.bin", "set.idx", "set"}) {
    const auto source = open({{path(name)}, 10, 9, 1});
    ASSERT_TRUE(source.ok()) << source.error();
    std::vector<std::int32_t> tokens(9);
    std::vector<std::int32_t> targets(9);
    source.value()->fill(0, 1, 0, 1, tokens, targets);
    EXPECT_EQ(tokens, (std::vector<std::int32_t>{0, 1, 2, 3, 4, 5, 6, 7, 8}));
    EXPECT_EQ(targets, (std::vector<std::int32_t>{1, 2, 3, 4, 5, 6, 7, 8, 9}));
  }
}

template <class Number>
void expect_read_back(const std::string& prefix, const std::vector<Number>& tokens) {
  const auto stream = open_indexed(prefix, 300);
  ASSERT_TRUE(stream.ok()) << stream.error();
  std::vector<std::int32_t> read(tokens.size());
  stream.value()->read(0, read);
  EXPECT_TRUE(std::equal(tokens.begin(), tokens.end(), read.begin()));
}

TEST_F(Files, OfEveryNumberTypeOfAnIndexedDatasetAreRead) {
  write("u8.bin", bytes_of<std::uint8_t>({1, 255, 7}));
  write("u8.idx", index_bytes({3}, 1, 1));
  expect_read_back<std::uint8_t>(path("u8"), {1, 255, 7});
  write("i16.bin", bytes_of<std::int16_t>({1, 299, 7}));
  write("i16.idx", index_bytes({1, 2}, 3, 2));
  expect_read_back<std::int16_t>(path("i16"), {1, 299, 7});
  write("u16.bin", bytes_of<std::uint16_t>({1, 299, 7}));
  write("u16.idx", index_bytes({1, 2}, 8, 2));
  expect_read_back<std::uint16_t>(path("u16"), {1, 299, 7});
  write("i64.bin", bytes_of<std::int64_t>({1, 299, 7}));
  write("i64.idx", index_bytes({3}, 5, 8));
  expect_read_back<std::int64_t>(path("i64"), {1, 299, 7});
}

TEST_F(Files, OfSeveralIndexedDatasetsFollowOneAnother) {
  write_indexed("one");
  write_indexed("two");
  const auto source = open({{path("one.bin"), path("two.bin")}, 10, 19, 1}).value();
  std::vector<std::int32_t> tokens(19);
  std::vector<std::int32_t> targets(19);
  source->fill(0, 1, 0, 1, tokens, targets);
  EXPECT_EQ(tokens[9], 9);
  EXPECT_EQ(tokens[10], 0);
  EXPECT_EQ(targets[18], 9);
}

TEST_F(Files, OfAnIndexedDatasetThatIsDamagedSayHow) {
  const std::string idx = index_bytes({4, 6}, 4, 4);
  const std::string bin = bytes_of<std::int32_t>({0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  const std::string where = path("set.idx");
  auto error = [&](const std::string& idx_bytes, const std::string& bin_bytes, int vocab = 10) {
    write("set.idx", idx_bytes);
    write("set.bin", bin_bytes);
    return error_of({path("set.bin")}, vocab);
  };
  EXPECT_EQ(error(idx, bin), "");
  EXPECT_EQ(error("TNTIDX\0\0\0" + idx, bin), where + " is no index of a Megatron dataset: it does not begin with MMIDIDX");
  EXPECT_EQ(error(idx.substr(0, 20), bin), where + " is truncated: its header takes 34 bytes, and it has 20");
  EXPECT_EQ(error(idx.substr(0, 60), bin),
            where + " is truncated: its header announces 2 sequences and 3 entries for documents, and it has 60 bytes");
  std::string other = idx;
  other[9] = 2;
  EXPECT_EQ(error(other, bin), where + " is an index of version 2; version 1 can be read");
  other = idx;
  other[17] = 7;
  EXPECT_EQ(error(other, bin), where + " gives number type 7 for its tokens; whole numbers (1 to 5, 8) can be read");
  other = idx;
  other[33] = 0x7f;  // the number of documents, beyond any memory
  EXPECT_NE(error(other, bin).find("is truncated"), std::string::npos);
  other = idx;
  other[50] = 5;  // the second sequence's byte offset
  EXPECT_EQ(error(other, bin), where + " is damaged: sequence 1 has 6 tokens at byte 5, and byte 16 comes next");
  EXPECT_EQ(error(index_bytes({}, 4, 4), bin), where + " holds no tokens");
  EXPECT_EQ(error(idx, bin.substr(0, 39)),
            path("set.bin") + " is truncated: " + where + " accounts for 40 bytes, and it has 39");
  EXPECT_EQ(error(idx, bin + "xxxx"),
            path("set.bin") + " is not of this index: " + where + " accounts for 40 bytes, and it has 44");
  EXPECT_EQ(error(idx, bin, 7), path("set.bin") + " holds token 7 at position 7, and the vocabulary ends at 6: choose a "
                                "larger --vocab, or data of the model's tokenizer");
  EXPECT_EQ(error(idx, bytes_of<std::int32_t>({0, -1, 2, 3, 4, 5, 6, 7, 8, 9})).substr(0, path("set.bin").size() + 29),
            path("set.bin") + " holds token -1 at position 1");
}

TEST_F(Files, OfAnIndexWithoutItsDataAreRefused) {
  write("set.idx", index_bytes({4}, 4, 4));
  EXPECT_EQ(error_of({path("set.idx")}), "cannot read the data " + path("set.bin") + ": No such file or directory");
  write("alone.bin", "abcd");
  EXPECT_EQ(error_of({path("alone.bin")}), "cannot read the data " + path("alone.idx") + ": No such file or directory");
}

TEST_F(Files, OfBothKindsAreNotMixed) {
  write_indexed("set");
  const std::string text = write("a.txt", "some text");
  const std::string error = "--data mixes an indexed dataset with text: " + path("set.bin") + " is indexed and " + text +
                            " is not; name files of one kind";
  EXPECT_EQ(error_of({path("set.bin"), text}), error);
  EXPECT_EQ(error_of({text, path("set.bin")}), error);
}

}  // namespace
}  // namespace shardbook::data
