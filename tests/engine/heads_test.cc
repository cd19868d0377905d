// The heads by themselves: losses and gradients of random hidden rows against plain double-precision loops.

#include <gtest/gtest.h>

#include <cmath>

#include "engine/language_model_head.h"
#include "engine/small_model.h"
#include "engine/span_head.h"

namespace batchwright::engine::test {
namespace {

constexpr std::int64_t kHidden = 24;

std::vector<float> random_values(std::int64_t count, std::uint64_t stream, double scale = 1) {
  RandomStream random(17, RandomUse::Test, stream);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& x : values) x = static_cast<float>(scale * random.normal());
  return values;
}

model::ModelConfig small_config() {
  model::ModelConfig config;
  config.hidden = kHidden;
  return config;
}

// Rows that a head reads, with a target each.
Shard labelled_rows(std::int64_t rows, std::int64_t classes) {
  Shard shard;
  shard.wants = WantedRows::Labelled;
  shard.wanted.ids.assign(static_cast<std::size_t>(rows), 0);
  RandomStream random(18, RandomUse::Test);
  for (std::int64_t i = 0; i < rows; ++i) {
    shard.targets.push_back(static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(classes))));
  }
  return shard;
}

struct Expected {
  double loss = 0;
  std::vector<double> d_hidden, d_weight;
};

// logits = hidden weight^T, cross-entropy of every row summed, in double and all at once.
Expected plain(const std::vector<float>& hidden, const std::vector<float>& weight, const Shard& shard,
               std::int64_t classes, double scale) {
  const auto rows = static_cast<std::int64_t>(shard.targets.size());
  Expected out;
  out.d_hidden.assign(hidden.size(), 0);
  out.d_weight.assign(weight.size(), 0);
  for (std::int64_t r = 0; r < rows; ++r) {
    std::vector<double> logits(static_cast<std::size_t>(classes), 0);
    double top = -1e300, sum = 0;
    for (std::int64_t c = 0; c < classes; ++c) {
      for (std::int64_t k = 0; k < kHidden; ++k) {
        logits[static_cast<std::size_t>(c)] +=
            static_cast<double>(hidden[static_cast<std::size_t>(r * kHidden + k)]) *
            weight[static_cast<std::size_t>(c * kHidden + k)];
      }
      top = std::max(top, logits[static_cast<std::size_t>(c)]);
    }
    for (const double x : logits) sum += std::exp(x - top);
    const std::int32_t target = shard.targets[static_cast<std::size_t>(r)];
    out.loss += top + std::log(sum) - logits[static_cast<std::size_t>(target)];
    for (std::int64_t c = 0; c < classes; ++c) {
      const double d =
          scale * (std::exp(logits[static_cast<std::size_t>(c)] - top) / sum - (c == target ? 1 : 0));
      for (std::int64_t k = 0; k < kHidden; ++k) {
        const auto h = static_cast<std::size_t>(r * kHidden + k),
                   w = static_cast<std::size_t>(c * kHidden + k);
        out.d_hidden[h] += d * weight[w];
        out.d_weight[w] += d * hidden[h];
      }
    }
  }
  return out;
}

double relative_difference(std::span<const float> found, std::span<const double> expected) {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    difference += std::pow(found[i] - expected[i], 2);
    norm += std::pow(expected[i], 2);
  }
  return std::sqrt(difference / norm);
}

// Parameters with one language model head, and what a pass needs.
struct HeadFixture {
  explicit HeadFixture(std::int64_t vocabulary, const std::string& device = "cpu") : ops(make_ops(device)) {
    model::Module module;
    module.name = "lm_head";
    module.out = vocabulary;
    module.in = kHidden;
    head = std::make_unique<LanguageModelHead>(module, 0, true, parameters);
    parameters.allocate(ops->device());
    weight = random_values(vocabulary * kHidden, 1, 0.3);
    ops->upload(weight.data(), std::ssize(weight), parameters.value(0));
    gradients.assign(weight.size(), 0);
  }
  Pass pass() {
    return {.ops = *ops, .arena = arena, .parameters = parameters, .gradients = gradients.data()};
  }

  std::unique_ptr<Ops> ops;
  Parameters parameters;
  std::unique_ptr<LanguageModelHead> head;
  Arena arena;
  std::vector<float> weight, gradients;
};

std::int64_t counted_peak(HeadFixture& fixture, const Shard& shard) {
  CountingOps counting(*fixture.ops);
  Arena counted;
  counted.start_counting();
  const Pass pass{.ops = counting,
                  .arena = counted,
                  .parameters = fixture.parameters,
                  .gradients = fixture.gradients.data()};
  float* d_hidden = fixture.gradients.data();  // nobody writes there: counting does nothing
  fixture.head->backward(pass, shard, nullptr, 1, d_hidden);
  return counted.counted_bytes();
}

class LanguageModelHeads : public ::testing::TestWithParam<std::string> {};

TEST_P(LanguageModelHeads, ChunksGiveThePlainLossAndGradients) {
  // A vocabulary so large that chunks are small: 150 rows take several.
  constexpr std::int64_t kVocabulary = 70000, kRows = 150;
  ASSERT_LT(LanguageModelHead::chunk_rows(kVocabulary), kRows / 2);
  HeadFixture fixture(kVocabulary, GetParam());
  const Shard shard = labelled_rows(kRows, kVocabulary);
  const auto hidden = random_values(kRows * kHidden, 2);
  std::vector<float> d_hidden(hidden.size());
  fixture.arena.reserve(counted_peak(fixture, shard));
  const double scale = 1.0 / kRows;
  const double loss = fixture.head->backward(fixture.pass(), shard, hidden.data(), scale, d_hidden.data());
  const Expected expected = plain(hidden, fixture.weight, shard, kVocabulary, scale);
  EXPECT_NEAR(loss / kRows, expected.loss / kRows, 1e-5);
  EXPECT_LT(relative_difference(d_hidden, expected.d_hidden), 1e-5);
  EXPECT_LT(relative_difference(fixture.gradients, expected.d_weight), 1e-5);
  EXPECT_NEAR(fixture.head->loss(fixture.pass(), shard, hidden.data()), loss, 1e-4);
}

TEST_P(LanguageModelHeads, ThePeakIsOneChunkHoweverManyTheTokens) {
  constexpr std::int64_t kVocabulary = 32000;
  HeadFixture fixture(kVocabulary, GetParam());
  const std::int64_t few = counted_peak(fixture, labelled_rows(200, kVocabulary));
  EXPECT_EQ(counted_peak(fixture, labelled_rows(20000, kVocabulary)), few);
  EXPECT_LE(few, LanguageModelHead::kChunkBytes + 4096);
}

INSTANTIATE_TEST_SUITE_P(Devices, LanguageModelHeads, ::testing::Values("cpu", "torch-cpu"),
                         [](const auto& one) { return one.param == "cpu" ? "Kernels" : "Torch"; });

// Two sequences, one padded: the padding's logits take no part and get no gradient.
TEST(SpanHeads, LossIsOverTheTokensOfEachSequence) {
  const auto ops = make_ops("cpu");
  Parameters parameters;
  model::Module module;
  module.name = "qa_outputs";
  const SpanHead head(small_config(), {}, module, parameters);
  parameters.allocate(ops->device());
  const auto weight = random_values(2 * kHidden, 3);
  ops->upload(weight.data(), std::ssize(weight), parameters.value(0));
  Shard shard;
  shard.wants = WantedRows::All;
  shard.tokens.ids.assign(9, 0);
  shard.tokens.sequences = {{.first_row = 0, .rows = 5, .valid = 3, .example = 0},
                            {.first_row = 5, .rows = 4, .valid = 4, .example = 1}};
  shard.targets = {1, 2, 0, 3};
  const auto hidden = random_values(9 * kHidden, 4);
  std::vector<float> gradients(2 * kHidden + 2, 0), d_hidden(hidden.size());
  Arena arena;
  arena.reserve(1 << 16);
  const Pass pass{.ops = *ops, .arena = arena, .parameters = parameters, .gradients = gradients.data()};
  const double loss = head.backward(pass, shard, hidden.data(), 0.5, d_hidden.data());

  double expected = 0;
  std::vector<double> d_expected(hidden.size(), 0);
  for (std::size_t i = 0; i < 2; ++i) {
    const Sequence& s = shard.tokens.sequences[i];
    for (std::int64_t end = 0; end < 2; ++end) {
      std::vector<double> logits(static_cast<std::size_t>(s.valid), 0);
      double sum = 0;
      for (std::int64_t t = 0; t < s.valid; ++t) {
        for (std::int64_t k = 0; k < kHidden; ++k)
          logits[static_cast<std::size_t>(t)] +=
              static_cast<double>(hidden[static_cast<std::size_t>((s.first_row + t) * kHidden + k)]) *
              weight[static_cast<std::size_t>(end * kHidden + k)];
        sum += std::exp(logits[static_cast<std::size_t>(t)]);
      }
      const std::int32_t target = shard.targets[2 * i + static_cast<std::size_t>(end)];
      expected += std::log(sum) - logits[static_cast<std::size_t>(target)];
      for (std::int64_t t = 0; t < s.valid; ++t) {
        const double d = 0.5 * (std::exp(logits[static_cast<std::size_t>(t)]) / sum - (t == target ? 1 : 0));
        for (std::int64_t k = 0; k < kHidden; ++k)
          d_expected[static_cast<std::size_t>((s.first_row + t) * kHidden + k)] +=
              d * weight[static_cast<std::size_t>(end * kHidden + k)];
      }
    }
  }
  EXPECT_NEAR(loss, expected, 1e-5);
  EXPECT_LT(relative_difference(d_hidden, d_expected), 1e-5);
  for (std::size_t k = 3 * kHidden; k < 5 * kHidden; ++k) EXPECT_EQ(d_hidden[k], 0) << "padding";
}

}  // namespace
}  // namespace batchwright::engine::test
