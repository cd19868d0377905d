// The verb as a user runs it: the real program, its output and its exit codes.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/json.h"
#include "paths.h"

namespace batchwright {
namespace {

struct Answer {
  int code = -1;
  std::string out;
};

Answer run(const std::string& arguments) {
  const std::string command = programs_folder() + "/batchwright plan " + arguments + " 2>/dev/null";
  Answer result;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return result;
  std::array<char, 4096> buffer;
  for (std::size_t n; (n = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
    result.out.append(buffer.data(), n);
  const int status = pclose(pipe);
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return result;
}

TEST(PlanVerb, PlansFromTheCommandLine) {
  const Answer table = run("bert-base-uncased --effective-batch 64 --gpu T4 --seq-len 128 --lora 16");
  EXPECT_EQ(table.code, 0);
  EXPECT_NE(table.out.find("64x1"), std::string::npos);
  EXPECT_NE(table.out.find("<- recommended"), std::string::npos);
  const Answer json = run("bert-base-uncased --effective-batch 64 --gpu T4 --seq-len 128 --lora 16 --json");
  EXPECT_EQ(json.code, 0);
  const Json document = parse_json(json.out, "output");
  EXPECT_EQ(document["version"], 1);
  EXPECT_EQ(document["splits"].size(), 7u);
  EXPECT_EQ(document["splits"][0]["micro_batch"], 64);
}

TEST(PlanVerb, OptionsMeanWhatTheRequestKeysMean) {
  const Answer line =
      run("llama-2-7b --method qlora --lora-targets q_proj,v_proj --lora-rank 8 --effective-batch 16 "
          "--micro-batch 2 --seq-len 512 "
          "--gpu a100 --memory-bytes 20GiB --headroom 10% --counter allocated --json");
  EXPECT_EQ(line.code, 0);
  const Json document = parse_json(line.out, "output");
  EXPECT_EQ(document["memory_limit_bytes"], 20ll << 30);
  EXPECT_EQ(document["trained_parameters"], 4194304);
  EXPECT_EQ(document["counter"], "allocated");
}

TEST(PlanVerb, ExitsWith1WhenNothingFits) {
  const Answer result = run("llama-3.1-70b --effective-batch 8 --gpu T4 --seq-len 2048 --json");
  EXPECT_EQ(result.code, 1);
  const Json document = parse_json(result.out, "output");
  EXPECT_TRUE(document["recommended"].is_null());
  EXPECT_FALSE(document["if_nothing_fits"].empty());
}

TEST(PlanVerb, ExitsWith2OnWrongUse) {
  for (const char* wrong :
       {"", "gpt2", "gpt2 --effective-batch 0 --seq-len 128",
        "gpt2 --effective-batch 8 --seq-len 128 --gpu XT9000", "gpt2 --effective-batch 8 --seq-len many",
        "gpt2 --effective-batch 8 --seq-len 128 --methods lora",
        "no-such-model --effective-batch 8 --seq-len 128", "--batch /nonexistent.jsonl",
        "gpt2 --effective-batch 8 --micro-batch 9 --seq-len 128 --gpu T4"}) {
    EXPECT_EQ(run(wrong).code, 2) << wrong;
  }
}

TEST(PlanVerb, AnswersABatchInOrderAndGoesOnAfterABadLine) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / "batchwright_plan_batch_test.jsonl";
  std::ofstream(path) << R"({"model": "gpt2", "effective_batch": 8, "seq_len": 128, "gpu": "T4"})" << "\n"
                      << R"({"model": "gpt2", "effective_batch": 8, "seq_lne": 128})" << "\n\n"
                      << R"({"model": "gpt2-xl", "effective_batch": 16, "seq_len": 128, "gpu": "T4"})"
                      << "\n";
  const Answer result = run("--batch " + path.string());
  std::filesystem::remove(path);
  EXPECT_EQ(result.code, 1);
  std::vector<Json> lines;
  for (std::size_t at = 0; at < result.out.size();) {
    const auto end = result.out.find('\n', at);
    lines.push_back(parse_json(result.out.substr(at, end - at), "line"));
    at = end + 1;
  }
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0]["requested_effective_batch"], 8);
  EXPECT_NE(lines[1]["error"]["hint"].get<std::string>().find("seq_len"), std::string::npos);
  EXPECT_EQ(lines[2]["requested_effective_batch"], 16);
}

TEST(PlanVerb, HelpIsThePage) {
  const Answer help = run("--help");
  EXPECT_EQ(help.code, 0);
  std::ifstream page(source_folder() + "/docs/plan.md");
  EXPECT_EQ(help.out, std::string(std::istreambuf_iterator<char>(page), {}));
}

}  // namespace
}  // namespace batchwright
