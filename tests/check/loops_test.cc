#include "check/loops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>

#include "base/files.h"
#include "paths.h"

namespace batchwright::check {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> case_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(fs::path(source_folder()) / "tests/cases/check/loops"))
    if (entry.path().extension() == ".py") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::string describe(const FileReport& report) {
  std::string text = report.missing;
  for (const Finding& finding : report.findings)
    text += " " + finding.kind + ":" + std::to_string(finding.line);
  return text;
}

bool has_kind(const FileReport& report, const std::string& kind) {
  return std::any_of(report.findings.begin(), report.findings.end(),
                     [&](const Finding& finding) { return finding.kind == kind; });
}

class LoopCase : public testing::TestWithParam<std::string> {};

// The first line of a case says what must come out: `# expect: ok`, `# expect: note KIND`, `# expect: mistake
// KIND ...` (at least one of the kinds, and no other) or `# expect: cannot_tell`.
TEST_P(LoopCase, IsJudgedAsItsFirstLineSays) {
  const auto path = fs::path(source_folder()) / "tests/cases/check/loops" / (GetParam() + ".py");
  const std::string source = read_file(path);
  std::istringstream header(source.substr(0, source.find('\n')));
  std::string hash, expect, verdict, kind;
  header >> hash >> expect >> verdict >> kind;
  std::set<std::string> allowed{kind};
  for (std::string more; header >> more;) allowed.insert(more);
  ASSERT_EQ(expect, "expect:") << "the case has no expectation";
  const FileReport report = check_python(source, path.string());
  if (verdict == "mistake") {
    EXPECT_EQ(report.verdict, Verdict::Mistake) << describe(report);
    EXPECT_TRUE(
        std::any_of(allowed.begin(), allowed.end(), [&](const auto& one) { return has_kind(report, one); }))
        << "found instead:" << describe(report);
    for (const Finding& finding : report.findings)
      EXPECT_TRUE(finding.severity == Severity::Note || allowed.contains(finding.kind))
          << "beside it:" << describe(report);
  } else if (verdict == "cannot_tell") {
    EXPECT_EQ(report.verdict, Verdict::CannotTell) << describe(report);
    EXPECT_FALSE(report.missing.empty());
  } else {
    EXPECT_EQ(report.verdict, Verdict::Ok) << describe(report);
    EXPECT_TRUE(verdict != "note" || has_kind(report, kind)) << "found instead:" << describe(report);
  }
}

INSTANTIATE_TEST_SUITE_P(All, LoopCase, testing::ValuesIn(case_names()),
                         [](const auto& one) { return one.param; });

// A right loop with one line moved or dropped is a wrong one.
struct Mutation {
  const char* base;
  const char* drop;    // the first occurrence of this text goes ...
  const char* insert;  // ... and this one comes
  const char* before;  // before the first occurrence of this text; "" at the place of the dropped one
  const char* kind;
};

class LoopMutation : public testing::TestWithParam<Mutation> {};

TEST_P(LoopMutation, IsFound) {
  const Mutation& mutation = GetParam();
  const auto path =
      fs::path(source_folder()) / "tests/cases/check/loops" / (std::string(mutation.base) + ".py");
  std::string source = read_file(path);
  ASSERT_EQ(check_python(source, "right").verdict, Verdict::Ok) << "the loop was not right to begin with";
  const std::size_t at = source.find(mutation.drop);
  ASSERT_NE(at, std::string::npos) << mutation.drop;
  source.erase(at, std::string_view(mutation.drop).size());
  const std::size_t place = *mutation.before ? source.find(mutation.before) : at;
  ASSERT_NE(place, std::string::npos) << mutation.before;
  source.insert(place, mutation.insert);
  const FileReport report = check_python(source, "wrong");
  EXPECT_EQ(report.verdict, Verdict::Mistake) << describe(report) << "\n" << source;
  EXPECT_TRUE(has_kind(report, mutation.kind)) << describe(report) << "\n" << source;
}

INSTANTIATE_TEST_SUITE_P(
    All, LoopMutation,
    testing::Values(
        Mutation{"exercise_2", " / window", "", "", "no_division"},
        Mutation{"exercise_2", "            optimizer.zero_grad(set_to_none=True)\n", "", "",
                 "missing_zero_grad"},
        Mutation{"exercise_2", "            scaler.unscale_(optimizer)\n", "", "", "clip_before_unscale"},
        Mutation{"exercise_2", "(index + 1) %", "index %", "", "off_by_one_boundary"},
        Mutation{"exercise_2", "            optimizer.zero_grad(set_to_none=True)\n",
                 "        optimizer.zero_grad()\n", "        last = index", "zero_grad_in_window"},
        Mutation{"plain_right", "        optimizer.zero_grad()\n        for", "        for", "", "tail_leak"},
        Mutation{"plain_right", "                optimizer.step()\n", "            optimizer.step()\n",
                 "            if (i + 1)", "apply_inside_loop"},
        Mutation{"class_counter_right", " / self.accumulate_every", "", "", "no_division"},
        Mutation{"class_counter_right", "        self.pending = 0\n\n    def run", "\n    def run", "",
                 "apply_inside_loop"},
        Mutation{"accelerate_right", "            optimizer.zero_grad()\n",
                 "            optimizer.zero_grad()\n", "            loss = model", "zero_grad_in_window"},
        Mutation{"accelerate_right", "            optimizer.zero_grad()\n", "", "", "missing_zero_grad"},
        Mutation{"inner_range_right", "    optimizer.zero_grad(set_to_none=True)\n",
                 "        optimizer.zero_grad()\n", "        batch = next", "zero_grad_in_window"},
        Mutation{"inner_range_right", "    schedule.step()\n", "        schedule.step()\n",
                 "        batch = next", "sched_per_micro_step"},
        Mutation{"islice_right", "        optimizer.step()\n", "            optimizer.step()\n",
                 "        optimizer.zero_grad", "apply_inside_loop"},
        Mutation{"amp_right", "            scaler.unscale_(opt)\n", "", "", "clip_before_unscale"},
        Mutation{"ddp_right", "            loss.backward()\n", "        loss.backward()\n",
                 "        if boundary:", "backward_outside_context"},
        Mutation{"lightning_manual_right", "loss / self.accumulate)", "loss)", "", "no_division"},
        Mutation{"trainer_sum_right", " / num_items_in_batch", "", "", "custom_loss_bypass"},
        Mutation{"tensorflow_right", " / accumulation_steps", "", "", "no_division"}));

// What the length of a scheduler from elsewhere counts cannot be seen: updates, or micro-batches.
TEST(Loops, AsksForTheLengthOfASchedulerThatIsPassedIn) {
  const std::string head = "def train(model, loader, optimizer, scheduler, accumulation_steps):\n";
  const std::string made =
      "def train(model, loader, optimizer, accumulation_steps):\n"
      "    scheduler = OneCycleLR(optimizer, 1e-3, total_steps=len(loader) // accumulation_steps)\n";
  const std::string body =
      "    optimizer.zero_grad()\n"
      "    for i, batch in enumerate(loader):\n"
      "        (model(batch) / accumulation_steps).backward()\n"
      "        if (i + 1) % accumulation_steps == 0:\n"
      "            optimizer.step()\n"
      "            optimizer.zero_grad()\n"
      "        scheduler.step()\n";
  const FileReport open = check_python(head + body, "a.py");
  EXPECT_EQ(open.verdict, Verdict::CannotTell) << describe(open);
  EXPECT_NE(open.missing.find("scheduler"), std::string::npos) << open.missing;
  EXPECT_TRUE(has_kind(check_python(made + body, "b.py"), "sched_per_micro_step"));
}

TEST(Loops, ReportsTheWeightsOfEachStep) {
  const FileReport report = check_python(
      "for i, b in enumerate(loader):\n"
      "    loss = model(b)\n"
      "    loss.backward()\n"
      "    if (i + 1) % accumulation_steps == 0:\n"
      "        optimizer.step()\n"
      "        optimizer.zero_grad()\n",
      "a.py");
  ASSERT_EQ(report.findings.empty(), false);
  const auto found = std::find_if(report.findings.begin(), report.findings.end(),
                                  [](const Finding& finding) { return finding.kind == "no_division"; });
  ASSERT_NE(found, report.findings.end());
  EXPECT_EQ(found->line, 3);
  ASSERT_TRUE(found->effective_weights.has_value());
  for (const auto& [step, weights] : *found->effective_weights) {
    EXPECT_EQ(weights.size(), 4u) << step;
    for (const double weight : weights) EXPECT_DOUBLE_EQ(weight, 1.0);
  }
}

TEST(Loops, KnowsFilesThatCannotHoldALoop) {
  EXPECT_FALSE(may_hold_loop("import torch\nx = torch.zeros(3)\n"));
  EXPECT_TRUE(may_hold_loop("loss.backward()\noptimizer.step()\n"));
}

std::string notebook_of(const std::string& code) {
  std::string quoted;
  for (const char c : code) quoted += c == '\n' ? "\\n" : c == '"' ? "\\\"" : std::string(1, c);
  return R"({"nbformat": 4, "cells": [{"cell_type": "markdown", "source": "text"},)"
         R"({"cell_type": "code", "source": ["%matplotlib inline\n", "!pip install torch\n"]},)"
         R"({"cell_type": "code", "source": ")" +
         quoted + R"("}]})";
}

TEST(Loops, ReadsNotebooks) {
  const auto path = fs::path(source_folder()) / "tests/cases/check/loops/lesson_no_division.py";
  const FileReport report = check_notebook(notebook_of(read_file(path)), "a.ipynb");
  EXPECT_TRUE(has_kind(report, "no_division")) << describe(report);
  EXPECT_EQ(check_notebook("{\"cells\": [", "b.ipynb").verdict, Verdict::CannotTell);
  EXPECT_EQ(check_notebook("[1, 2]", "c.ipynb").verdict, Verdict::Ok);
}

// Damaged copies of every case: no input may crash or hang it.
TEST(Loops, SurvivesDamage) {
  unsigned state = 12345;
  const auto random = [&state] { return state = state * 1664525u + 1013904223u; };
  for (const auto& name : case_names()) {
    const std::string source =
        read_file(fs::path(source_folder()) / "tests/cases/check/loops" / (name + ".py"));
    for (int round = 0; round < 3; ++round) {
      std::string damaged = source;
      for (int i = 0; i < 6; ++i) {
        const std::size_t at = (random() >> 8) % damaged.size();
        switch ((random() >> 8) % 4) {
          case 0:
            damaged.erase(at, (random() >> 8) % 20);
            break;
          case 1:
            damaged.insert(at, 1, static_cast<char>(random() >> 20));
            break;
          case 2:
            damaged.insert(at, damaged.substr((random() >> 8) % damaged.size(), 40));
            break;
          default:
            damaged[at] = "()[]{}:,.=%/\n \t"[(random() >> 8) % 15];
        }
        if (damaged.empty()) damaged = "x";
      }
      check_python(damaged, name);
    }
  }
}

TEST(Loops, SurvivesHostileInput) {
  const std::string loop = "\nfor b in loader:\n    loss.backward()\n    optimizer.step()\n";
  check_python(std::string(300'000, '(') + loop, "deep");
  // An attribute that is written with itself.
  check_python(
      "class A:\n    rate = A.rate.get()\n    def fit(self):\n        for b in self.rate:\n"
      "            self.loss(b).backward()\n            self.optimizer.step()\n",
      "own attribute");
  check_python("x = [" + std::string(2'000'000, '1') + "]" + loop, "long line");
  check_python(
      "x = " +
          [] {
            std::string sum = "1";
            for (int i = 0; i < 20'000; ++i) sum += " + y";
            return sum;
          }() +
          loop,
      "long sum");
  std::string nested;
  for (int i = 0; i < 300; ++i) nested += std::string(static_cast<std::size_t>(i), ' ') + "while True:\n";
  check_python(nested + std::string(300, ' ') + "loss.backward(); optimizer.step()\n", "nested loops");
  std::string calls;
  for (int i = 0; i < 2'000; ++i)
    calls += "def f" + std::to_string(i) + "():\n    f" + std::to_string(i + 1) + "()\n    f" +
             std::to_string(i + 1) + "()\n";
  check_python(calls + "def f2000():\n    loss.backward()\n    optimizer.step()\n", "call chain");
  check_python(std::string("\xff\xfe\x00", 3) + loop, "bytes");
}

}  // namespace
}  // namespace batchwright::check
