// A folder for the files of one test, and the bytes of a small indexed dataset.
#pragma once

#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace shardbook::data {

class Temporary : public testing::Test {
 protected:
  Temporary() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::temp_directory_path() /
              (std::string("shardbook_") + test->test_suite_name() + "_" + test->name() + "_" + std::to_string(::getpid()));
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~Temporary() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
  }

 private:
  std::filesystem::path folder_;
};

template <class Number>
std::string bytes_of(const std::vector<Number>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(Number)};
}

// The .idx that Megatron writes for sequences of these lengths, each a document of its own.
inline std::string index_bytes(const std::vector<std::int32_t>& lengths, int code, int token_bytes) {
  std::vector<std::int64_t> pointers;
  std::vector<std::int64_t> documents{0};
  std::int64_t at = 0;
  for (std::int32_t length : lengths) {
    pointers.push_back(at);
    at += std::int64_t{length} * token_bytes;
    documents.push_back(static_cast<std::int64_t>(documents.size()));
  }
  return std::string("MMIDIDX\0\0", 9) + bytes_of<std::uint64_t>({1}) + static_cast<char>(code) +
         bytes_of<std::uint64_t>({lengths.size(), documents.size()}) + bytes_of(lengths) + bytes_of(pointers) +
         bytes_of(documents);
}

}  // namespace shardbook::data
