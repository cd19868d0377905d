// Mutates a corpus and gives it to the readers of what people bring: data files, config.json, safetensors.
//
//   reader_fuzz CORPUS [--only READER] [--seconds S] [--rounds N] [--seed K]
//
// CORPUS has one folder a reader (csv, tsv, jsonl, documents, conll, squad, config, index, weights) with its
// seeds. First every seed as it is, then mutations until S seconds are over, or N a seed (default 200). A
// reader may accept an input or throw Error; it must not crash, take more than 20 seconds, or refuse a data
// file without a line. The input that runs is in FUZZ_INPUT (default reader_fuzz.input), so that it survives
// a crash.

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/random.h"
#include "data/documents.h"
#include "data/questions.h"
#include "data/tagged_rows.h"
#include "data/text_rows.h"
#include "model/config.h"
#include "model/parameters.h"
#include "model/safetensors.h"

namespace batchwright {
namespace {

constexpr unsigned kSecondsAllowed = 20;
constexpr std::size_t kLongestInput = 1 << 16;

using Reader = std::function<void(const std::string& content)>;

// Readers that take UTF-8 get it checked first, as read_* does before parse_*.
void as_text(const std::string& content, const Reader& read) {
  if (invalid_utf8_at(content) == std::string_view::npos) read(content);
}

std::map<std::string, Reader> readers(const std::filesystem::path& scratch) {
  const data::ColumnNames columns;
  const auto folder_with = [scratch](const char* name, const std::string& content) {
    // No atomic write: thousands a second, and nobody else reads them.
    std::FILE* file = std::fopen((scratch / name).c_str(), "wb");
    std::fwrite(content.data(), 1, content.size(), file);
    std::fclose(file);
    return scratch;
  };
  return {
      {"csv",
       [=](const auto& c) { as_text(c, [&](auto& t) { data::parse_delimited(t, "input", columns, ','); }); }},
      {"tsv",
       [=](const auto& c) {
         as_text(c, [&](auto& t) { data::parse_delimited(t, "input", columns, '\t'); });
       }},
      {"jsonl",
       [=](const auto& c) { as_text(c, [&](auto& t) { data::parse_json_lines(t, "input", columns); }); }},
      {"documents",
       [=](const auto& c) { as_text(c, [&](auto& t) { data::parse_documents(t, "input", columns); }); }},
      {"conll", [](const auto& c) { as_text(c, [&](auto& t) { data::parse_conll(t, "input"); }); }},
      {"squad",
       [](const auto& c) {
         as_text(c, [&](auto& text) {
           const data::QuestionSet set = data::parse_squad(text, "input");
           for (const data::Question& question : set.questions) data::question_line(text, question);
         });
       }},
      {"config",
       [](const auto& c) {
         const auto config = model::model_config_from_json(parse_json(c, "input"), "input");
         if (config.layers <= 1000) model::count_parameters(config, model::Head::None);
       }},
      {"index",
       [=](const auto& c) {
         model::Safetensors::open_model(folder_with("model.safetensors.index.json", c));
       }},
      {"weights",
       [=](const auto& c) {
         model::Safetensors::open_file(folder_with("model.safetensors", c) / "model.safetensors");
       }},
  };
}

bool names_a_line(const std::string& message) {
  for (const std::string_view mark : {"input:", "line "}) {
    const auto at = message.find(mark);
    if (at != std::string::npos && at + mark.size() < message.size() &&
        std::isdigit(message[at + mark.size()]))
      return true;
  }
  // Of a whole document nobody knows the line: how deep it is, or which of two equal names is meant.
  for (const std::string_view whole : {"nested deeper", "twice", "has no questions"}) {
    if (message.find(whole) != std::string::npos) return true;
  }
  return false;
}

// The running input, in a file that outlives this process.
class LastInput {
 public:
  LastInput() {
    const char* name = std::getenv("FUZZ_INPUT");
    const int fd = ::open(name != nullptr ? name : "reader_fuzz.input", O_RDWR | O_CREAT | O_TRUNC, 0644);
    if (fd < 0 || ::ftruncate(fd, kLongestInput) != 0)
      throw Error(ErrorKind::Usage, "FUZZ_INPUT", "cannot be written");
    map_ = static_cast<char*>(::mmap(nullptr, kLongestInput, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    ::close(fd);
  }
  void keep(const std::string& content) {
    std::memset(map_, 0, kLongestInput);
    std::memcpy(map_, content.data(), std::min(content.size(), kLongestInput));
  }

 private:
  char* map_;
};

class Mutator {
 public:
  Mutator(const std::vector<std::string>& seeds, std::uint64_t seed)
      : seeds_(seeds), random_(seed, RandomUse::Test) {}

  std::string next(std::size_t seed) {
    std::string text = seeds_[seed];
    const std::uint64_t changes = 1 + random_.below(6);
    for (std::uint64_t i = 0; i < changes; ++i) change(text);
    if (text.size() > kLongestInput) text.resize(kLongestInput);
    return text;
  }

 private:
  std::size_t place(const std::string& text) { return random_.below(text.size() + 1); }

  void change(std::string& text) {
    static const std::vector<std::string> kWords = {"\"",
                                                    "\"\"",
                                                    ",",
                                                    "\t",
                                                    "\n",
                                                    "\r\n",
                                                    "{",
                                                    "}",
                                                    "[",
                                                    "]",
                                                    ":",
                                                    "\\",
                                                    "\\u",
                                                    "\\ud800",
                                                    "null",
                                                    "true",
                                                    "-1",
                                                    "1e999",
                                                    "9223372036854775808",
                                                    "0.5",
                                                    "# ",
                                                    "B-",
                                                    "O",
                                                    " ",
                                                    "\xc3\xa9",
                                                    "\xff",
                                                    std::string(1, '\0'),
                                                    "-DOCSTART-",
                                                    "{\"a\":",
                                                    "[[[["};
    const std::size_t at = place(text);
    const std::size_t length = text.empty() ? 0 : std::min<std::size_t>(random_.below(40), text.size() - at);
    switch (random_.below(7)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(random_.next());
        break;
      case 1:
        text.insert(at, kWords[random_.below(kWords.size())]);
        break;
      case 2:
        text.erase(at, length);
        break;
      case 3:
        text.insert(place(text), text.substr(at, length));
        break;
      case 4: {
        const std::string& other = seeds_[random_.below(seeds_.size())];
        text = text.substr(0, at) + other.substr(random_.below(other.size() + 1));
        break;
      }
      case 5:
        text.resize(at);
        break;
      default: {  // another number where one stands
        const std::size_t digit = text.find_first_of("0123456789", at);
        if (digit != std::string::npos)
          text.replace(digit, 1,
                       std::to_string(static_cast<std::int64_t>(random_.next()) >> random_.below(64)));
      }
    }
  }

  const std::vector<std::string>& seeds_;
  RandomStream random_;
};

struct Options {
  std::filesystem::path corpus;
  std::string only;
  double seconds = 0;
  std::int64_t rounds = 200;
  std::uint64_t seed = 1;
};

class Fuzzer {
 public:
  explicit Fuzzer(const Options& options) : options_(options) {
    char pattern[] = "/tmp/batchwright-fuzz-XXXXXX";
    scratch_ = ::mkdtemp(pattern);
    const std::vector<float> values = {1, 2};
    // The shard that the index seeds name.
    model::write_safetensors(scratch_ / "model-00001-of-00001.safetensors",
                             std::vector<model::TensorToWrite>{{"a", {1}, std::span(values).first(1)},
                                                               {"b", {1}, std::span(values).last(1)}});
  }
  ~Fuzzer() { std::filesystem::remove_all(scratch_); }

  bool run() {
    for (const auto& [name, reader] : readers(scratch_)) {
      if (options_.only.empty() || options_.only == name) run(name, reader);
    }
    return passed_;
  }

 private:
  void run(const std::string& name, const Reader& reader) {
    std::vector<std::string> seeds;
    for (const auto& entry : std::filesystem::directory_iterator(options_.corpus / name))
      seeds.push_back(read_file(entry.path()));
    std::sort(seeds.begin(), seeds.end());
    Mutator mutator(seeds, options_.seed);
    accepted_ = inputs_ = 0;
    for (const std::string& seed : seeds) feed(name, reader, seed);
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(options_.seconds);
    const auto more = [&](std::int64_t round) {
      return options_.seconds > 0 ? std::chrono::steady_clock::now() < end : round < options_.rounds;
    };
    for (std::int64_t round = 0; more(round); ++round) {
      for (std::size_t i = 0; i < seeds.size(); ++i) feed(name, reader, mutator.next(i));
    }
    fmt::print("{}: {} seeds, {} inputs, {} accepted\n", name, seeds.size(), inputs_, accepted_);
  }

  void feed(const std::string& name, const Reader& reader, const std::string& content) {
    last_.keep(content);
    ++inputs_;
    ::alarm(kSecondsAllowed);  // a reader that hangs ends the process
    try {
      reader(content);
      ++accepted_;
    } catch (const Error& e) {
      const bool data = name != "config" && name != "index" && name != "weights";
      if (e.kind() == ErrorKind::Internal || (data && !names_a_line(e.what()))) {
        fmt::print("{}: {}\n", name, e.what());
        passed_ = false;
      }
    }
    ::alarm(0);
  }

  const Options& options_;
  std::filesystem::path scratch_;
  LastInput last_;
  std::int64_t inputs_ = 0, accepted_ = 0;
  bool passed_ = true;
};

Options parse(int argc, char** argv) {
  Options options;
  options.corpus = argc > 1 ? argv[1] : "tests/cases/data/corpus";
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string name = argv[i], value = argv[i + 1];
    if (name == "--only") options.only = value;
    if (name == "--seconds") options.seconds = std::stod(value);
    if (name == "--rounds") options.rounds = std::stoll(value);
    if (name == "--seed") options.seed = std::stoull(value);
  }
  return options;
}

}  // namespace
}  // namespace batchwright

int main(int argc, char** argv) {
  const batchwright::Options options = batchwright::parse(argc, argv);
  return batchwright::Fuzzer(options).run() ? 0 : 1;
}
