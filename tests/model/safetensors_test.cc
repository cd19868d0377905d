#include "model/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/random.h"

namespace batchwright::model {
namespace {

class SafetensorsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/batchwright-safetensors-XXXXXX";
    folder_ = ::mkdtemp(pattern);
    path_ = folder_ / "model.safetensors";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static std::string file_of(const std::string& header, std::size_t data_bytes) {
    const std::uint64_t length = header.size();
    return std::string(reinterpret_cast<const char*>(&length), 8) + header + std::string(data_bytes, '\1');
  }
  std::string fault(const std::string& content) {
    std::ofstream(path_, std::ios::binary)
        << content;  // without the sync, which thousands of rounds would wait for
    try {
      Safetensors::open_file(path_);
    } catch (const Error& e) {
      EXPECT_EQ(exit_code(e.kind()), 2);
      EXPECT_EQ(e.subject().find(path_.string()), 0u) << e.what();
      return e.what();
    }
    return "";
  }

  std::filesystem::path folder_, path_;
};

TEST_F(SafetensorsTest, WritesWhatItReads) {
  const std::vector<float> a = {1, 2, 3, 4, 5, 6}, b = {-1};
  const std::vector<TensorToWrite> tensors = {{"a", {2, 3}, a}, {"b", {}, b}};
  write_safetensors(path_, tensors);
  const Safetensors file = Safetensors::open_model(folder_);
  ASSERT_NE(file.find("a"), nullptr);
  EXPECT_EQ(file.find("a")->shape, (std::vector<std::int64_t>{2, 3}));
  std::vector<float> read(6);
  copy_as_float(*file.find("a"), "a", read);
  EXPECT_EQ(read, a);
  EXPECT_EQ(file.find("b")->elements(), 1);
  EXPECT_EQ(file.find("c"), nullptr);
}

TEST_F(SafetensorsTest, ConvertsHalfPrecision) {
  const std::string header =
      R"({"h":{"dtype":"F16","shape":[4],"data_offsets":[0,8]},"b":{"dtype":"BF16","shape":[1],"data_offsets":[8,10]}})";
  std::string content = file_of(header, 10);
  const std::uint16_t halves[5] = {0x3c00, 0xc500, 0x0001, 0x7bff,
                                   0x4049};  // 1, -5, 2^-24, 65504; bf16 3.140625
  std::memcpy(content.data() + content.size() - 10, halves, 10);
  write_file_atomic(path_, content);
  const Safetensors file = Safetensors::open_file(path_);
  std::vector<float> h(4), b(1);
  copy_as_float(*file.find("h"), "h", h);
  copy_as_float(*file.find("b"), "b", b);
  EXPECT_EQ(h, (std::vector<float>{1, -5, 0x1p-24f, 65504}));
  EXPECT_EQ(b[0], 3.140625f);
}

TEST_F(SafetensorsTest, EveryBrokenFileIsNamedAndNoneIsRead) {
  EXPECT_NE(fault(""), "");
  EXPECT_NE(fault("1234567"), "");
  std::string claims(8, '\0');
  claims[7] = 0x10;  // a header of 2^60 bytes
  EXPECT_NE(fault(claims + "{}").find("claims a header of 1152921504606846976 bytes"), std::string::npos);
  EXPECT_NE(fault(file_of("{", 0)), "");
  EXPECT_NE(fault(file_of("[]", 0)), "");
  const auto entry = [](const char* dtype, const char* shape, const char* offsets) {
    return std::string(R"({"x":{"dtype":")") + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" +
           offsets + "}}";
  };
  EXPECT_EQ(fault(file_of(entry("F32", "[2]", "[0,8]"), 8)), "");
  EXPECT_NE(fault(file_of(entry("F32", "[2]", "[0,8]"), 7)), "");  // truncated
  EXPECT_NE(fault(file_of(entry("F32", "[3]", "[0,8]"), 8)), "");
  EXPECT_NE(fault(file_of(entry("F32", "[2]", "[8,0]"), 8)), "");
  EXPECT_NE(fault(file_of(entry("F32", "[-2]", "[0,8]"), 8)), "");
  EXPECT_NE(fault(file_of(entry("F32", "[4294967296,4294967296]", "[0,8]"), 8)), "");
  EXPECT_NE(fault(file_of(entry("F32", "[2]", "[0,18446744073709551615]"), 8)), "");
  EXPECT_NE(fault(file_of(entry("F32", "[2]", "[0]"), 8)), "");
  EXPECT_NE(fault(file_of(entry("F32", "2", "[0,8]"), 8)), "");
  EXPECT_NE(fault(file_of(entry("Q4", "[2]", "[0,8]"), 8)).find("type Q4"), std::string::npos);
  EXPECT_NE(fault(file_of(R"({"x":3})", 8)), "");
  const auto two = [](const char* first, const char* second) {
    return std::string(R"({"x":{"dtype":"F32","shape":[2],"data_offsets":)") + first +
           R"(},"y":{"dtype":"F32","shape":[2],"data_offsets":)" + second + "}}";
  };
  EXPECT_EQ(fault(file_of(two("[8,16]", "[0,8]"), 16)), "");
  EXPECT_NE(fault(file_of(two("[0,8]", "[4,12]"), 12)), "");   // overlap
  EXPECT_NE(fault(file_of(two("[0,8]", "[12,20]"), 20)), "");  // hole
  EXPECT_NE(fault(file_of(two("[0,8]", "[8,16]"), 20)), "");   // bytes that belong to nobody
}

TEST_F(SafetensorsTest, AnyBytesAreReadOrRefused) {
  const std::vector<float> a = {1, 2, 3, 4};
  const std::vector<TensorToWrite> tensors = {{"a", {2, 2}, a}, {"b", {4}, a}};
  write_safetensors(path_, tensors);
  const std::string good = read_file(path_);
  RandomStream random(1, RandomUse::Test);
  for (int round = 0; round < 500; ++round) {
    std::string broken = good.substr(0, random.below(2) == 0 ? good.size() : random.below(good.size()));
    for (std::uint64_t i = random.below(4); i > 0 && !broken.empty(); --i) {
      broken[random.below(broken.size())] = static_cast<char>(random.next());
    }
    fault(broken);
  }
}

TEST_F(SafetensorsTest, ShardsAreFoundThroughTheirIndexAndStayInTheFolder) {
  const std::vector<float> a = {1, 2};
  write_safetensors(folder_ / "one.safetensors", std::vector<TensorToWrite>{{"a", {2}, a}});
  write_safetensors(folder_ / "two.safetensors", std::vector<TensorToWrite>{{"b", {2}, a}});
  const auto index = folder_ / "model.safetensors.index.json";
  write_file_atomic(index, R"({"weight_map":{"a":"one.safetensors","b":"two.safetensors"}})");
  EXPECT_NE(Safetensors::open_model(folder_).find("b"), nullptr);
  write_file_atomic(index, R"({"weight_map":{"c":"one.safetensors"}})");
  EXPECT_THROW(Safetensors::open_model(folder_), Error);
  write_file_atomic(index, R"({"weight_map":{"a":"../one.safetensors"}})");
  EXPECT_THROW(Safetensors::open_model(folder_), Error);
  std::filesystem::remove(index);
  EXPECT_THROW(Safetensors::open_model(folder_), Error);
}

}  // namespace
}  // namespace batchwright::model
