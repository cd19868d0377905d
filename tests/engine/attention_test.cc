// Every instruction set's attention against plain double-precision loops.

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "engine/every_kernels.h"

namespace batchwright::engine::test {
namespace {

class AttentionTest : public KernelsTest {};

struct AttentionCase {
  const char* what;
  std::int64_t rows, valid, first_query, queries, group, head_dim;
  bool causal, dropout;
  std::int64_t window = 0;
};

// One key-value head and its group, with buffers and the plain double-precision mathematics beside them.
class AttentionCheck {
 public:
  explicit AttentionCheck(const AttentionCase& c) : c_(c), stride_((c.group + 2) * c.head_dim) {
    qkv_ = random_values(static_cast<std::size_t>(c.rows * stride_), 1);
    bias_ = random_values(static_cast<std::size_t>(stride_), 2);
    d_context_ = random_values(static_cast<std::size_t>(c.queries * c.group * c.head_dim), 3);
    keep_.assign(static_cast<std::size_t>(c.group * c.queries * words()), 0xffffffffu);
    RandomStream random(4, RandomUse::Test);
    if (c.dropout) {
      for (auto& word : keep_) word = random.next() | random.next();  // keeps three of four
    }
    context_.resize(d_context_.size());
    want_context_.resize(d_context_.size());
    want_.resize(qkv_.size());
    d_.assign(qkv_.size(), 99.0f);
  }

  void run(const Kernels& kernels) {
    std::vector<float> lse(static_cast<std::size_t>(c_.queries * c_.group)),
        scratch(static_cast<std::size_t>(kernels.attention_scratch(c_.rows, c_.queries, c_.head_dim)));
    const AttentionHead head = view();
    kernels.attention_forward(head, context_.data(), lse.data(), scratch.data());
    kernels.attention_backward(head, lse.data(), d_context_.data(),
                               {.dq = d_.data(),
                                .dk = d_.data() + c_.group * c_.head_dim,
                                .dv = d_.data() + (c_.group + 1) * c_.head_dim,
                                .stride = stride_},
                               scratch.data());
    for (std::int64_t member = 0; member < c_.group; ++member) {
      for (std::int64_t i = 0; i < c_.queries; ++i) query(member, i);
    }
    for (std::size_t i = 0; i < want_context_.size(); ++i)
      ASSERT_NEAR(context_[i], want_context_[i], 2e-5) << i;
    for (std::size_t i = 0; i < want_.size(); ++i) ASSERT_NEAR(d_[i], want_[i], 2e-4) << i;
  }

 private:
  AttentionHead view() const {
    const std::int64_t k = c_.group * c_.head_dim, v = k + c_.head_dim;
    return {.q = qkv_.data(),
            .k = qkv_.data() + k,
            .v = qkv_.data() + v,
            .q_bias = bias_.data(),
            .k_bias = bias_.data() + k,
            .v_bias = bias_.data() + v,
            .q_stride = stride_,
            .k_stride = stride_,
            .v_stride = stride_,
            .context_stride = k,
            .group = c_.group,
            .head_dim = c_.head_dim,
            .rows = c_.rows,
            .valid = c_.valid,
            .first_query = c_.first_query,
            .queries = c_.queries,
            .scale = static_cast<float>(scale()),
            .causal = c_.causal,
            .window = c_.window,
            .keep_bits = c_.dropout ? keep_.data() : nullptr,
            .keep_scale = static_cast<float>(keep_scale())};
  }
  std::int64_t words() const { return (c_.rows + 31) / 32; }
  double scale() const { return 1 / std::sqrt(static_cast<double>(c_.head_dim)); }
  double keep_scale() const { return c_.dropout ? 4.0 / 3 : 1.0; }
  std::size_t place(std::int64_t row, std::int64_t part, std::int64_t i) const {
    return static_cast<std::size_t>(row * stride_ + part * c_.head_dim + i);
  }
  double at(std::int64_t row, std::int64_t part, std::int64_t i) const {
    return static_cast<double>(qkv_[place(row, part, i)]) + bias_[place(0, part, i)];
  }
  double kept(std::int64_t member, std::int64_t i, std::int64_t j) const {
    const auto word = static_cast<std::size_t>((member * c_.queries + i) * words() + j / 32);
    return (keep_[word] >> (j % 32) & 1) != 0 ? keep_scale() : 0.0;
  }

  // The textbook's softmax and its gradient, for one query.
  void query(std::int64_t member, std::int64_t i) {
    const std::int64_t row = c_.first_query + i, key = c_.group, value = c_.group + 1;
    const std::int64_t end = c_.causal ? std::min(c_.valid, row + 1) : c_.valid;
    std::int64_t begin = c_.window > 0 ? std::max<std::int64_t>(0, row + 1 - c_.window) : 0;
    begin = std::min(begin, end - 1);
    std::vector<double> p(static_cast<std::size_t>(end)), dp(p.size());
    double total = 0, dot = 0;
    for (std::int64_t j = begin; j < end; ++j) {
      double score = 0;
      for (std::int64_t k = 0; k < c_.head_dim; ++k) score += at(row, member, k) * at(j, key, k);
      total += p[static_cast<std::size_t>(j)] = std::exp(score * scale());
    }
    for (std::int64_t j = begin; j < end; ++j) {
      const auto J = static_cast<std::size_t>(j);
      p[J] /= total;
      for (std::int64_t k = 0; k < c_.head_dim; ++k) {
        const auto out = static_cast<std::size_t>((i * c_.group + member) * c_.head_dim + k);
        want_context_[out] += p[J] * kept(member, i, j) * at(j, value, k);
        dp[J] += d_context_[out] * at(j, value, k) * kept(member, i, j);
        want_[place(j, value, k)] += p[J] * kept(member, i, j) * d_context_[out];
      }
      dot += p[J] * dp[J];
    }
    for (std::int64_t j = begin; j < end; ++j) {
      const double ds = p[static_cast<std::size_t>(j)] * (dp[static_cast<std::size_t>(j)] - dot) * scale();
      for (std::int64_t k = 0; k < c_.head_dim; ++k) {
        want_[place(row, member, k)] += ds * at(j, key, k);
        want_[place(j, key, k)] += ds * at(row, member, k);
      }
    }
  }

  AttentionCase c_;
  std::int64_t stride_;
  std::vector<float> qkv_, bias_, d_context_, context_, d_;
  std::vector<std::uint32_t> keep_;
  std::vector<double> want_context_, want_;
};

TEST_P(AttentionTest, ContextAndItsGradient) {
  for (const AttentionCase& c :
       std::vector<AttentionCase>{{"one row", 1, 1, 0, 1, 1, 8, false, false},
                                  {"dropout", 13, 13, 0, 13, 1, 8, false, true},
                                  {"padding", 37, 30, 0, 37, 1, 32, false, true},
                                  {"first row asks", 20, 20, 0, 1, 1, 20, false, true},
                                  {"causal, padded, two blocks", 70, 65, 0, 70, 1, 64, true, true},
                                  {"causal", 16, 16, 0, 16, 1, 16, true, false},
                                  {"grouped", 60, 60, 0, 60, 3, 16, true, false},
                                  {"grouped, dropout", 50, 41, 0, 50, 2, 24, true, true},
                                  {"last row asks", 130, 120, 119, 1, 2, 16, true, true},
                                  {"window of one block", 150, 150, 0, 150, 2, 16, true, false, 40},
                                  {"window, padded past it", 150, 90, 0, 150, 1, 16, true, true, 7},
                                  {"many blocks", 201, 201, 0, 201, 1, 40, true, true}}) {
    SCOPED_TRACE(c.what);
    AttentionCheck(c).run(kernels);
  }
}

INSTANTIATE_TEST_SUITE_P(All, AttentionTest, ::testing::ValuesIn(all_kernels()), kernels_name);

}  // namespace
}  // namespace batchwright::engine::test
