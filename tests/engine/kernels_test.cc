// Every instruction set's kernels against plain double-precision loops, at sizes with and without tails.

#include "engine/kernels.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "engine/every_kernels.h"

namespace batchwright::engine::test {
namespace {

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
  kernels.attention_dropout_bits(key, 8, 5, 0, 40, 40, shorter.data());
  kernels.attention_dropout_bits(key, 8, 5, 0, 70, 70, longer.data());
  for (std::size_t head = 0; head < 5; ++head) {
    for (std::size_t i = 0; i < 40; ++i) {
      EXPECT_EQ(shorter[(head * 40 + i) * 2], longer[(head * 70 + i) * 3]);
    }
  }
}

void check_norm(const Kernels& kernels, NormKind kind, std::int64_t cols) {
  constexpr std::int64_t kRows = 3;
  const auto count = static_cast<std::size_t>(kRows * cols);
  const auto x = random_values(count, 1), residual = random_values(count, 2), gamma = random_values(count, 3),
             beta = random_values(count, 4), bias = random_values(count, 5), dy = random_values(count, 6);
  std::vector<float> normalized(count), inverse(kRows), y(count), dz(count), sum(count),
      dgamma(static_cast<std::size_t>(cols)), dbeta(static_cast<std::size_t>(cols));
  kernels.residual_norm_forward({.kind = kind,
                                 .x = x.data(),
                                 .bias = bias.data(),
                                 .residual = residual.data(),
                                 .gamma = gamma.data(),
                                 .beta = beta.data(),
                                 .epsilon = 1e-5f,
                                 .rows = kRows,
                                 .cols = cols,
                                 .sum = sum.data(),
                                 .normalized = normalized.data(),
                                 .inverse_std = inverse.data(),
                                 .y = y.data()});
  kernels.norm_backward({.kind = kind,
                         .dy = dy.data(),
                         .normalized = normalized.data(),
                         .inverse_std = inverse.data(),
                         .gamma = gamma.data(),
                         .residual = residual.data(),
                         .rows = kRows,
                         .cols = cols,
                         .dz = dz.data(),
                         .dgamma = dgamma.data(),
                         .dbeta = dbeta.data()});
  std::vector<double> want_dgamma(static_cast<std::size_t>(cols));
  for (std::int64_t row = 0; row < kRows; ++row) {
    std::vector<double> z(static_cast<std::size_t>(cols));
    double mean = 0, variance = 0, mean_g = 0, mean_gn = 0;
    for (std::int64_t c = 0; c < cols; ++c) {
      const auto at = static_cast<std::size_t>(row * cols + c), col = static_cast<std::size_t>(c);
      z[col] = static_cast<double>(x[at]) + bias[col] + residual[at];
      EXPECT_NEAR(sum[at], z[col], 1e-6);
      if (kind == NormKind::Layer) mean += z[col] / static_cast<double>(cols);
    }
    for (const double v : z) variance += (v - mean) * (v - mean) / static_cast<double>(cols);
    const double scale = 1 / std::sqrt(variance + 1e-5);
    for (std::int64_t c = 0; c < cols; ++c) {
      const auto at = static_cast<std::size_t>(row * cols + c), col = static_cast<std::size_t>(c);
      const double n = (z[col] - mean) * scale, g = static_cast<double>(dy[at]) * gamma[col];
      EXPECT_NEAR(y[at], n * gamma[col] + beta[col], 2e-5);
      if (kind == NormKind::Layer) mean_g += g / static_cast<double>(cols);
      mean_gn += g * n / static_cast<double>(cols);
      want_dgamma[col] += dy[at] * n;
    }
    for (std::int64_t c = 0; c < cols; ++c) {
      const auto at = static_cast<std::size_t>(row * cols + c), col = static_cast<std::size_t>(c);
      const double n = (z[col] - mean) * scale, g = static_cast<double>(dy[at]) * gamma[col];
      EXPECT_NEAR(dz[at], (g - mean_g - n * mean_gn) * scale + residual[at], 2e-5);
    }
  }
  for (std::size_t c = 0; c < want_dgamma.size(); ++c) EXPECT_NEAR(dgamma[c], want_dgamma[c], 3e-5);
}

TEST_P(KernelsTest, ResidualNormAndItsGradient) {
  for (const std::int64_t cols : {7, 32, 50}) {
    for (const NormKind kind : {NormKind::Layer, NormKind::Rms}) check_norm(kernels, kind, cols);
  }
}

TEST_P(KernelsTest, RotationTurnsHalvesAndBack) {
  constexpr std::int64_t kRows = 3, kHeads = 2, kDim = 10, kStride = 25, kPositions = 7;
  const auto x = random_values(kRows * kStride, 1), gamma = random_values(kDim, 2),
             angles = random_values(kPositions * kDim / 2, 3);
  std::vector<float> cosine, sine, y(kRows * kStride), back(kRows * kStride);
  for (const float angle : angles) {
    cosine.push_back(std::cos(angle));
    sine.push_back(std::sin(angle));
  }
  const std::vector<std::uint32_t> positions = {4, 0, 6};
  Rotation r{.x = x.data(),
             .gamma = gamma.data(),
             .cosine = cosine.data(),
             .sine = sine.data(),
             .rows = kRows,
             .heads = kHeads,
             .head_dim = kDim,
             .x_stride = kStride,
             .y_stride = kStride,
             .y = y.data()};
  kernels.rotate(r, positions.data());
  r.x = y.data(), r.y = back.data(), r.gamma = nullptr, r.backward = true;
  kernels.rotate(r, positions.data());
  for (std::size_t row = 0; row < kRows; ++row) {
    for (std::size_t i = 0; i < kHeads * kDim; ++i) {
      const std::size_t start = row * kStride + i / kDim * kDim, at = row * kStride + i, d = i % kDim;
      const std::size_t pair = d % (kDim / 2), angle = positions[row] * (kDim / 2) + pair;
      const double low = static_cast<double>(x[start + pair]) * gamma[pair],
                   high = static_cast<double>(x[start + kDim / 2 + pair]) * gamma[kDim / 2 + pair];
      const double want =
          d < kDim / 2 ? low * cosine[angle] - high * sine[angle] : high * cosine[angle] + low * sine[angle];
      EXPECT_NEAR(y[at], want, 2e-6);
      EXPECT_NEAR(back[at], static_cast<double>(x[at]) * gamma[d], 2e-6);
    }
  }
}

TEST_P(KernelsTest, GeluIsExactToItsStatedError) {
  std::vector<float> x, y(4001), dx(4001), ones(4001, 1.0f);
  for (int i = -2000; i <= 2000; ++i) x.push_back(static_cast<float>(i) * 0.005f);
  kernels.activation_forward(Activation::Gelu, x.data(), 4001, y.data());
  kernels.activation_backward(Activation::Gelu, ones.data(), x.data(), 4001, dx.data());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double v = x[i], phi = 0.5 * std::erfc(-v / std::sqrt(2.0));
    const double density = std::exp(-v * v / 2) / std::sqrt(2 * M_PI);
    EXPECT_NEAR(y[i], v * phi, 2e-7 * std::max(1.0, std::abs(v))) << v;
    EXPECT_NEAR(dx[i], phi + v * density, 4e-7) << v;
  }
}

TEST_P(KernelsTest, GeluTanhAndItsGradient) {
  std::vector<float> x, y(2001), dx(2001), ones(2001, 1.0f);
  for (int i = -1000; i <= 1000; ++i) x.push_back(static_cast<float>(i) * 0.01f);
  kernels.activation_forward(Activation::GeluTanh, x.data(), 2001, y.data());
  kernels.activation_backward(Activation::GeluTanh, ones.data(), x.data(), 2001, dx.data());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double v = x[i], root = std::sqrt(2 / M_PI), t = std::tanh(root * (v + 0.044715 * v * v * v));
    EXPECT_NEAR(y[i], 0.5 * v * (1 + t), 4e-7 * std::max(1.0, std::abs(v))) << v;
    const double slope = root * (1 + 3 * 0.044715 * v * v);
    EXPECT_NEAR(dx[i], 0.5 * (1 + t) + 0.5 * v * (1 - t * t) * slope, 2e-6 * std::max(1.0, std::abs(v))) << v;
  }
}

TEST_P(KernelsTest, SwigluAndItsGradient) {
  constexpr std::int64_t kRows = 3, kCols = 21;
  const auto gate_up = random_values(2 * kRows * kCols, 1), dy = random_values(kRows * kCols, 2);
  std::vector<float> y(kRows * kCols), d = gate_up;
  kernels.swiglu_forward(gate_up.data(), kRows, kCols, y.data());
  kernels.swiglu_backward(dy.data(), d.data(), kRows, kCols, d.data());  // in place
  for (std::size_t row = 0; row < kRows; ++row) {
    for (std::size_t c = 0; c < kCols; ++c) {
      const std::size_t at = row * kCols + c, gate = 2 * row * kCols + c, up = gate + kCols;
      const double g = gate_up[gate], u = gate_up[up], s = 1 / (1 + std::exp(-g));
      EXPECT_NEAR(y[at], g * s * u, 2e-6);
      EXPECT_NEAR(d[gate], dy[at] * u * (s + g * s * (1 - s)), 2e-6);
      EXPECT_NEAR(d[up], dy[at] * g * s, 2e-6);
    }
  }
}

TEST_P(KernelsTest, CrossEntropyAndItsGradient) {
  for (const std::size_t classes : {2u, 7u, 16u, 5003u}) {
    auto logits = random_values(classes, 1);
    for (float& x : logits) x *= 8;
    const std::vector<double> before(logits.begin(), logits.end());
    const std::size_t target = classes / 2;
    double total = 0;
    for (const double x : before) total += std::exp(x);
    const double loss = kernels.cross_entropy(logits.data(), static_cast<std::int64_t>(classes),
                                              static_cast<std::int64_t>(target), 0.25f);
    EXPECT_NEAR(loss, std::log(total) - before[target], 2e-6) << classes;
    for (std::size_t i = 0; i < classes; ++i) {
      const double want = 0.25 * (std::exp(before[i]) / total - (i == target ? 1 : 0));
      EXPECT_NEAR(logits[i], want, 1e-7) << classes << ", " << i;
    }
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

INSTANTIATE_TEST_SUITE_P(All, KernelsTest, ::testing::ValuesIn(all_kernels()), kernels_name);

}  // namespace
}  // namespace batchwright::engine::test
