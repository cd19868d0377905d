// Every instruction set's kernels against plain double-precision loops, at sizes with and without tails.

#include "engine/kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/random.h"

namespace batchwright::engine {
namespace {

std::vector<const Kernels*> all_kernels() {
  std::vector<const Kernels*> result = {&baseline_kernels()};
  for (const Kernels* kernels : {avx2_kernels(), avx512_kernels()}) {
    if (kernels != nullptr) result.push_back(kernels);
  }
  return result;
}

std::vector<float> random_values(std::size_t count, std::uint64_t stream) {
  RandomStream random(11, RandomUse::Test, stream);
  std::vector<float> values(count);
  for (float& x : values) x = static_cast<float>(random.normal());
  return values;
}

class KernelsTest : public ::testing::TestWithParam<const Kernels*> {
 protected:
  const Kernels& kernels = *GetParam();
};

// Philox4x32 with 7 rounds, written plainly: the definition that the vector code must follow.
std::uint32_t philox7_word(std::array<std::uint32_t, 4> c, std::uint64_t key, int word) {
  std::uint32_t k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 7; ++round) {
    const std::uint64_t p0 = 0xD2511F53ull * c[0], p1 = 0xCD9E8D57ull * c[2];
    c = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<std::uint32_t>(p0)};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c[static_cast<std::size_t>(word)];
}

TEST_P(KernelsTest, DropoutBitsFollowTheDocumentedGenerator) {
  const DropoutKey key{
      .seed = 0x123456789abcdefull, .step = 42, .layer_and_site = 3u << 16 | 5u << 24, .threshold = 6554};
  const std::vector<std::uint32_t> positions = {0, 17}, examples = {9, 100000};
  constexpr std::int64_t kCols = 300, kWords = (kCols + 31) / 32;
  std::vector<std::uint32_t> bits(2 * kWords);
  kernels.dropout_bits(key, positions.data(), examples.data(), 2, kCols, bits.data());
  for (std::size_t row = 0; row < 2; ++row) {
    for (std::int64_t e = 0; e < kCols; ++e) {
      const auto block = static_cast<std::uint32_t>(e / 128 * 16 + e % 32 / 2);
      const std::uint32_t word =
          philox7_word({block, positions[row] | key.layer_and_site, examples[row], key.step}, key.seed,
                       static_cast<int>(e / 32 % 4));
      const std::uint32_t half = e % 2 == 0 ? word & 0xffff : word >> 16;
      const std::size_t at = row * kWords + static_cast<std::size_t>(e / 32);
      ASSERT_EQ(bits[at] >> (e % 32) & 1, half >= key.threshold ? 1u : 0u) << row << ", " << e;
    }
  }
}

TEST_P(KernelsTest, DropoutKeepsTheRightShare) {
  const DropoutKey key{.seed = 1, .step = 1, .layer_and_site = 0, .threshold = 6554};
  std::vector<std::uint32_t> positions(1000), examples(1000, 4), bits(1000 * 32);
  for (std::uint32_t i = 0; i < 1000; ++i) positions[i] = i;
  kernels.dropout_bits(key, positions.data(), examples.data(), 1000, 1024, bits.data());
  double kept = 0;
  for (const std::uint32_t word : bits) kept += std::popcount(word);
  EXPECT_NEAR(kept / (1000 * 1024), 0.9, 0.0015);  // five standard deviations
}

TEST_P(KernelsTest, AttentionMaskDoesNotDependOnPadding) {
  const DropoutKey key{.seed = 1, .step = 1, .layer_and_site = 1u << 24, .threshold = 20000};
  std::vector<std::uint32_t> shorter(5 * 40 * 2), longer(5 * 70 * 3);
  kernels.attention_dropout_bits(key, 8, 5, 40, 40, shorter.data());
  kernels.attention_dropout_bits(key, 8, 5, 70, 70, longer.data());
  for (std::size_t head = 0; head < 5; ++head) {
    for (std::size_t i = 0; i < 40; ++i) {
      EXPECT_EQ(shorter[(head * 40 + i) * 2], longer[(head * 70 + i) * 3]);
    }
  }
}

TEST_P(KernelsTest, ResidualNormAndItsGradient) {
  for (const std::int64_t cols : {7, 32, 50}) {
    constexpr std::int64_t kRows = 3;
    const auto count = static_cast<std::size_t>(kRows * cols);
    const auto x = random_values(count, 1), residual = random_values(count, 2),
               gamma = random_values(count, 3), beta = random_values(count, 4),
               bias = random_values(count, 5), dy = random_values(count, 6);
    std::vector<float> normalized(count), inverse(kRows), y(count), dz(count),
        dgamma(static_cast<std::size_t>(cols)), dbeta(static_cast<std::size_t>(cols));
    kernels.residual_norm_forward(x.data(), bias.data(), nullptr, 1, residual.data(), gamma.data(),
                                  beta.data(), 1e-5f, kRows, cols, normalized.data(), inverse.data(),
                                  y.data());
    kernels.norm_backward(dy.data(), normalized.data(), inverse.data(), gamma.data(), kRows, cols, dz.data(),
                          dgamma.data(), dbeta.data());
    std::vector<double> want_dgamma(static_cast<std::size_t>(cols));
    for (std::int64_t row = 0; row < kRows; ++row) {
      std::vector<double> z(static_cast<std::size_t>(cols));
      double mean = 0, variance = 0, mean_g = 0, mean_gn = 0;
      for (std::int64_t c = 0; c < cols; ++c) {
        const auto at = static_cast<std::size_t>(row * cols + c), col = static_cast<std::size_t>(c);
        z[col] = static_cast<double>(x[at]) + bias[col] + residual[at];
        mean += z[col] / static_cast<double>(cols);
      }
      for (const double v : z) variance += (v - mean) * (v - mean) / static_cast<double>(cols);
      const double scale = 1 / std::sqrt(variance + 1e-5);
      for (std::int64_t c = 0; c < cols; ++c) {
        const auto at = static_cast<std::size_t>(row * cols + c), col = static_cast<std::size_t>(c);
        const double n = (z[col] - mean) * scale, g = static_cast<double>(dy[at]) * gamma[col];
        EXPECT_NEAR(y[at], n * gamma[col] + beta[col], 2e-5);
        mean_g += g / static_cast<double>(cols);
        mean_gn += g * n / static_cast<double>(cols);
        want_dgamma[col] += dy[at] * n;
      }
      for (std::int64_t c = 0; c < cols; ++c) {
        const auto at = static_cast<std::size_t>(row * cols + c), col = static_cast<std::size_t>(c);
        const double n = (z[col] - mean) * scale, g = static_cast<double>(dy[at]) * gamma[col];
        EXPECT_NEAR(dz[at], (g - mean_g - n * mean_gn) * scale, 2e-5);
      }
    }
    for (std::size_t c = 0; c < want_dgamma.size(); ++c) EXPECT_NEAR(dgamma[c], want_dgamma[c], 3e-5);
  }
}

TEST_P(KernelsTest, GeluIsExactToItsStatedError) {
  std::vector<float> x, y(4001), dx(4001), ones(4001, 1.0f);
  for (int i = -2000; i <= 2000; ++i) x.push_back(static_cast<float>(i) * 0.005f);
  kernels.gelu_forward(x.data(), 4001, y.data());
  kernels.gelu_backward(ones.data(), x.data(), 4001, dx.data());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double v = x[i], phi = 0.5 * std::erfc(-v / std::sqrt(2.0));
    const double density = std::exp(-v * v / 2) / std::sqrt(2 * M_PI);
    EXPECT_NEAR(y[i], v * phi, 2e-7 * std::max(1.0, std::abs(v))) << v;
    EXPECT_NEAR(dx[i], phi + v * density, 4e-7) << v;
  }
}

struct AttentionCase {
  std::int64_t rows, valid, queries, head_dim;
  bool causal, dropout;
};

// A plain double-precision attention and its gradient by the textbook formulas.
void check_attention(const Kernels& kernels, const AttentionCase& c) {
  const std::int64_t stride = 3 * c.head_dim, words = (c.rows + 31) / 32;
  const auto qkv = random_values(static_cast<std::size_t>(c.rows * stride), 1);
  const auto bias = random_values(static_cast<std::size_t>(stride), 2);
  const auto dout = random_values(static_cast<std::size_t>(c.queries * c.head_dim), 3);
  std::vector<std::uint32_t> keep(static_cast<std::size_t>(c.queries * words), 0xffffffffu);
  RandomStream random(4, RandomUse::Test);
  if (c.dropout) {
    for (auto& word : keep) word = random.next() | random.next();  // keeps three of four
  }
  const double keep_scale = c.dropout ? 4.0 / 3 : 1.0, scale = 1 / std::sqrt(static_cast<double>(c.head_dim));
  const AttentionHead head{.q = qkv.data(),
                           .k = qkv.data() + c.head_dim,
                           .v = qkv.data() + 2 * c.head_dim,
                           .q_bias = bias.data(),
                           .k_bias = bias.data() + c.head_dim,
                           .v_bias = bias.data() + 2 * c.head_dim,
                           .stride = stride,
                           .queries = c.queries,
                           .rows = c.rows,
                           .valid = c.valid,
                           .head_dim = c.head_dim,
                           .scale = static_cast<float>(scale),
                           .causal = c.causal,
                           .keep_bits = c.dropout ? keep.data() : nullptr,
                           .keep_scale = static_cast<float>(keep_scale)};
  std::vector<float> context(dout.size()), lse(static_cast<std::size_t>(c.queries)), d(qkv.size(), 99.0f),
      scratch(static_cast<std::size_t>(kernels.attention_scratch(c.rows, c.head_dim)));
  kernels.attention_forward(head, context.data(), c.head_dim, lse.data(), scratch.data());
  kernels.attention_backward(head, lse.data(), dout.data(), c.head_dim, d.data(), d.data() + c.head_dim,
                             d.data() + 2 * c.head_dim, scratch.data());
  const auto at = [&](std::int64_t row, std::int64_t part, std::int64_t i) {
    return static_cast<double>(qkv[static_cast<std::size_t>(row * stride + part * c.head_dim + i)]) +
           bias[static_cast<std::size_t>(part * c.head_dim + i)];
  };
  std::vector<double> want(qkv.size(), 0.0);
  const auto gradient = [&](std::int64_t row, std::int64_t part, std::int64_t i) -> double& {
    return want[static_cast<std::size_t>(row * stride + part * c.head_dim + i)];
  };
  for (std::int64_t i = 0; i < c.queries; ++i) {
    const std::int64_t seen = c.causal ? std::min(c.valid, i + 1) : c.valid;
    std::vector<double> p(static_cast<std::size_t>(seen)), dp(p.size());
    double total = 0, dot = 0;
    for (std::int64_t j = 0; j < seen; ++j) {
      double score = 0;
      for (std::int64_t k = 0; k < c.head_dim; ++k) score += at(i, 0, k) * at(j, 1, k);
      total += p[static_cast<std::size_t>(j)] = std::exp(score * scale);
    }
    const auto kept = [&](std::int64_t j) {
      return (keep[static_cast<std::size_t>(i * words + j / 32)] >> (j % 32) & 1) != 0 ? keep_scale : 0.0;
    };
    for (std::int64_t k = 0; k < c.head_dim; ++k) {
      double sum = 0;
      for (std::int64_t j = 0; j < seen; ++j)
        sum += p[static_cast<std::size_t>(j)] / total * kept(j) * at(j, 2, k);
      EXPECT_NEAR(context[static_cast<std::size_t>(i * c.head_dim + k)], sum, 2e-5);
    }
    for (std::int64_t j = 0; j < seen; ++j) {
      const auto J = static_cast<std::size_t>(j);
      p[J] /= total;
      for (std::int64_t k = 0; k < c.head_dim; ++k) {
        const double g = dout[static_cast<std::size_t>(i * c.head_dim + k)];
        dp[J] += g * at(j, 2, k) * kept(j);
        gradient(j, 2, k) += p[J] * kept(j) * g;
      }
      dot += p[J] * dp[J];
    }
    for (std::int64_t j = 0; j < seen; ++j) {
      const auto J = static_cast<std::size_t>(j);
      for (std::int64_t k = 0; k < c.head_dim; ++k) {
        gradient(i, 0, k) += p[J] * (dp[J] - dot) * at(j, 1, k) * scale;
        gradient(j, 1, k) += p[J] * (dp[J] - dot) * at(i, 0, k) * scale;
      }
    }
  }
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(d[i], want[i], 1e-4) << i;
}

TEST_P(KernelsTest, AttentionAndItsGradient) {
  for (const AttentionCase& c : std::vector<AttentionCase>{{1, 1, 1, 8, false, false},
                                                           {13, 13, 13, 8, false, true},
                                                           {37, 30, 37, 32, false, true},
                                                           {20, 20, 1, 20, false, true},
                                                           {70, 65, 70, 64, true, true},
                                                           {16, 16, 16, 16, true, false}}) {
    SCOPED_TRACE(testing::Message() << c.rows << " rows, " << c.valid << " valid, head " << c.head_dim);
    check_attention(kernels, c);
  }
}

TEST_P(KernelsTest, AdamWFollowsItsDefinition) {
  constexpr std::size_t kCount = 21;
  auto value = random_values(kCount, 1), m = std::vector<float>(kCount), v = std::vector<float>(kCount);
  std::vector<double> want(value.begin(), value.end()), wm(kCount), wv(kCount);
  for (int t = 1; t <= 5; ++t) {
    const auto g = random_values(kCount, static_cast<std::uint64_t>(t) + 1);
    const double b1 = 1 - std::pow(0.9, t), b2 = 1 - std::pow(0.999, t);
    kernels.adamw({.value = value.data(),
                   .gradient = g.data(),
                   .moment1 = m.data(),
                   .moment2 = v.data(),
                   .count = kCount,
                   .gradient_scale = 0.5f,
                   .learning_rate = 1e-2f,
                   .weight_decay = 0.1f,
                   .bias_correction1 = static_cast<float>(b1),
                   .bias_correction2 = static_cast<float>(b2)});
    for (std::size_t i = 0; i < kCount; ++i) {
      const double gradient = 0.5 * g[i];
      wm[i] = 0.9 * wm[i] + 0.1 * gradient;
      wv[i] = 0.999 * wv[i] + 0.001 * gradient * gradient;
      want[i] -= 1e-2 * 0.1 * want[i];
      want[i] -= 1e-2 * (wm[i] / b1) / (std::sqrt(wv[i] / b2) + 1e-8);
      EXPECT_NEAR(value[i], want[i], 3e-6);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, KernelsTest, ::testing::ValuesIn(all_kernels()),
                         [](const auto& one) { return std::string(one.param->name); });

}  // namespace
}  // namespace batchwright::engine
