// Any bytes are answered: mutated cases of every format, read together as one run. CHECK_FUZZ_SECONDS
// (default 1) says for how long, CHECK_FUZZ_SEED where to begin; run it for minutes under build/address.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <random>

#include "base/error.h"
#include "base/files.h"
#include "check/config_tree.h"
#include "check/report_json.h"
#include "check/together.h"
#include "paths.h"

namespace batchwright::check {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

double setting(const char* name, double fallback) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::atof(text) : fallback;
}

std::vector<SourceFile> seeds() {
  std::vector<SourceFile> found;
  for (const auto& entry :
       fs::recursive_directory_iterator(fs::path(source_folder()) / "tests/cases/check")) {
    if (!entry.is_regular_file() || entry.path().filename() == "expect.json") continue;
    std::string text = read_file(entry.path());
    const std::string path = entry.path().filename().string();
    const FileKind kind = kind_of(path, text);
    found.push_back({path, std::move(text), kind, true, ""});
  }
  std::sort(found.begin(), found.end(), [](const SourceFile& a, const SourceFile& b) {
    return std::tie(a.path, a.text) < std::tie(b.path, b.text);
  });
  return found;
}

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}
  std::size_t below(std::size_t limit) { return limit == 0 ? 0 : random_() % limit; }

  void change(std::string& text, const std::string& other) {
    const std::size_t at = below(text.size() + 1), size = below(text.size() - at + 1);
    switch (below(9)) {
      case 0:
        text.erase(at, std::min<std::size_t>(size, 200));
        break;
      case 1:
        text.insert(at, text.substr(below(text.size() + 1), 400));
        break;
      case 2:
        text.insert(at, other.substr(below(other.size() + 1), 600));
        break;
      case 3:
        if (at < text.size()) text[at] = static_cast<char>(below(256));
        break;
      case 4:
        text.insert(at, std::string(1 + below(300), "([{:\n \"'0,%="[below(13)]));
        break;
      case 5:
        text.resize(at);
        break;
      case 6:
        text.insert(at, std::to_string(random_()));
        break;
      case 7: {  // a line somewhere else
        const std::size_t from = text.rfind('\n', at), to = text.find('\n', at);
        if (from == std::string::npos || to == std::string::npos || to <= from) break;
        const std::string line = text.substr(from, to - from);
        text.erase(from, to - from);
        const auto end = text.begin() + static_cast<std::ptrdiff_t>(below(text.size() + 1));
        text.insert(static_cast<std::size_t>(std::find(end, text.end(), '\n') - text.begin()), line);
        break;
      }
      default:
        text.insert(at, "\xff\xfe\0\x80", 4);
    }
    if (text.size() > 60'000) text.resize(60'000);
  }

 private:
  std::mt19937_64 random_;
};

TEST(CheckFuzz, AnyBytesAreAnsweredInTime) {
  const auto files = seeds();
  ASSERT_GT(files.size(), 300u);
  Mutator mutator(static_cast<std::uint64_t>(setting("CHECK_FUZZ_SEED", 1)));
  const auto end = Clock::now() + std::chrono::duration<double>(setting("CHECK_FUZZ_SECONDS", 1));
  std::size_t rounds = 0;
  while (Clock::now() < end) {
    std::vector<SourceFile> run;
    for (std::size_t i = 0; i <= mutator.below(2); ++i) {
      SourceFile file = files[mutator.below(files.size())];
      for (std::size_t k = 0; k <= mutator.below(6); ++k)
        mutator.change(file.text, files[mutator.below(files.size())].text);
      file.kind = kind_of(file.path, file.text);
      run.push_back(std::move(file));
    }
    const auto start = Clock::now();
    ASSERT_NO_THROW(report_json(check_together(run, {})));
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    ASSERT_LT(seconds, 20) << run[0].path << "\n" << run[0].text;
    ++rounds;
  }
  RecordProperty("rounds", static_cast<int>(rounds));
  EXPECT_GT(rounds, 5u);
}

// yaml-cpp alone makes empty documents of this until memory ends.
TEST(CheckFuzz, ABatchOfSettingsCutOutOfAFileIsRefused) {
  for (const char* text : {"{\"train_batch_size\": 4},", ",", "a: 1\n---\n{b: 2},\n"}) {
    EXPECT_THROW(parse_config_tree(text, "ds.json"), Error) << text;
  }
  EXPECT_EQ(parse_config_tree("a: 1\n---\n---\nb: 2\n", "x.yaml").list.size(), 3u);
}

// What mutated files once crashed on.
TEST(CheckFuzz, HalfWrittenFilesAreAnswered) {
  const auto answered = [](const std::string& path, const std::string& text) {
    const auto report = check_together({{path, text, kind_of(path, text), true, ""}}, {});
    return !report_json(report).empty();
  };
  EXPECT_TRUE(answered("run.sh", "deepspeed --include"));
  EXPECT_TRUE(answered("loop.py",
                       "def update(p):\n"
                       "    p.register_post_accumulate_grad_hook(update)\n"
                       "    q.register_post_accumulate_grad_hook(lambda g: g)\n"
                       "for p in model.parameters():\n"
                       "    p.register_post_accumulate_grad_hook(update)\n"
                       "for batch in loader:\n"
                       "    model(**batch).loss.backward()\n"));
}

}  // namespace
}  // namespace batchwright::check
