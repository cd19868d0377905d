#include "plan/remedies.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string>

#include "plan/advice.h"
#include "plan/interval.h"

namespace batchwright::plan {
namespace {

constexpr std::size_t kMostChanges = 6;

struct Remedy {
  std::string name;
  int cost = 0;                                 // only their order has a meaning
  std::function<bool(Request&, Split&)> apply;  // false when it changes nothing
};

template <typename E>
std::function<bool(Request&, Split&)> setting(E Request::* field, E value) {
  return [field, value](Request& request, Split&) {
    if (request.*field == value) return false;
    request.*field = value;
    return true;
  };
}

bool to_lora(Request& request, Split&) {
  if (request.method != Method::Full) return false;
  request.method = Method::Lora;
  if (request.framework != Framework::Native && request.compute != ComputeType::Fp32)
    request.weights = request.compute == ComputeType::Fp16 ? WeightType::Fp16 : WeightType::Bf16;
  return true;
}

bool to_qlora(Request& request, Split&) {
  if (request.method == Method::Qlora) return false;
  request.method = Method::Qlora;
  request.weights = WeightType::Nf4;
  request.kbit_preparation = request.framework == Framework::Transformers;
  return true;
}

std::function<bool(Request&, Split&)> shorter(std::int64_t divisor) {
  return [divisor](Request& request, Split&) {
    if (request.longest() < 16 * divisor) return false;
    request.lengths.counts = {{request.longest() / divisor, 1}};
    return true;
  };
}

bool is_sharded(const Request& request) {
  return request.sharding == Sharding::Fsdp || request.sharding == Sharding::Zero3;
}

// The coarsest exact split below the planned one that fits, else the finest: the same batch, only more
// slowly.
std::optional<Split> finer_split(const Plan& plan, const ModelShape& shape) {
  std::optional<Split> finest;
  const MemoryModel memory(shape, plan.request, plan.device);
  for (const Split& split : exact_splits(plan.request.effective_batch, plan.request.devices)) {
    if (split.micro_batch >= plan.splits.back().split.micro_batch) continue;
    finest = split;
    if (fits_within(memory.predict(split), plan.request, plan.device, plan.limit_bytes) == Fits::Yes) break;
  }
  return finest;
}

// What this framework and this model can do: what costs only time, then what changes the method, then the
// data.
std::vector<Remedy> remedies_for(const Plan& plan, const ModelShape& shape) {
  const Request& request = plan.request;
  const bool native = request.framework == Framework::Native;
  const bool language_model = shape.head == model::Head::CausalLm;
  std::vector<Remedy> all;
  if (const auto finer = finer_split(plan, shape)) {
    all.push_back({"split " + to_string(*finer), 1, [finer](Request&, Split& split) {
                     split = *finer;
                     return true;
                   }});
  }
  if (!native && request.attention == Attention::Eager)
    all.push_back({"attention sdpa", 2, setting(&Request::attention, Attention::Sdpa)});
  if (!native && language_model) all.push_back({"loss chunked", 3, setting(&Request::loss, Loss::Chunked)});
  if (!native && request.optimizer == Optimizer::AdamW)
    all.push_back({"optimizer adamw-fused", 4, setting(&Request::optimizer, Optimizer::AdamWFused)});
  all.push_back({"checkpointing full", 10, setting(&Request::checkpointing, Checkpointing::Full)});
  if (request.devices > 1 && !is_sharded(request))
    all.push_back({"sharding fsdp", 20, setting(&Request::sharding, Sharding::Fsdp)});
  if (!native && (request.optimizer == Optimizer::AdamW || request.optimizer == Optimizer::AdamWFused))
    all.push_back({"optimizer adamw-8bit", 21, setting(&Request::optimizer, Optimizer::AdamW8bit)});
  all.push_back({"method lora", 50, to_lora});
  if (!native) all.push_back({"method qlora", 80, to_qlora});
  for (const std::int64_t divisor : {2, 4})
    all.push_back(
        {fmt::format("seq-len {}", request.longest() / divisor), divisor == 2 ? 120 : 180, shorter(divisor)});
  return all;
}

// A set of remedies, as bits, with what it leads to.
struct Candidate {
  unsigned bits = 0;
  int cost = 0;
  Change change;
};

class Search {
 public:
  Search(const Plan& plan, const ShapeSource& shapes)
      : plan_(plan), shapes_(shapes), remedies_(remedies_for(plan, shapes(plan.request))) {}

  std::vector<Change> run() {
    look_for(Fits::Yes);
    if (found_.empty()) look_for(Fits::Unsure);
    if (found_.empty() && !remedies_.empty()) found_.push_back(predict(least()));
    std::sort(found_.begin(), found_.end(), [](const auto& a, const auto& b) { return a.cost < b.cost; });
    std::vector<Change> changes;
    for (Candidate& candidate : found_) changes.push_back(std::move(candidate.change));
    if (changes.size() > kMostChanges) changes.resize(kMostChanges);
    return changes;
  }

 private:
  void look_for(Fits wanted) {
    unsigned cheap = 0;  // every setting that costs no more than time
    for (std::size_t i = 0; i < remedies_.size(); ++i) {
      add(1u << i, wanted);
      if (remedies_[i].cost > 1 && remedies_[i].cost <= 10) cheap |= 1u << i;
    }
    add(cheap, wanted);
    for (std::size_t i = 0; i < remedies_.size(); ++i) add(cheap | 1u << i, wanted);
    if (found_.size() > 1) return;
    for (std::size_t i = 0; i < remedies_.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) add(cheap | 1u << i | 1u << j, wanted);
    }
  }

  // Keeps the set, less what it does not need, if it fits as wanted and holds no set that was found.
  void add(unsigned bits, Fits wanted) {
    if (contains_found(bits) || outcome_of(bits).fits != wanted) return;
    for (std::size_t i = remedies_.size(); i-- > 0;) {
      const unsigned without = bits & ~(1u << i);
      if (without != bits && without != 0 && outcome_of(without).fits == wanted) bits = without;
    }
    if (!contains_found(bits)) found_.push_back(predict(bits));
  }

  // The fewest changes that come as near as all of them: how far away it is.
  unsigned least() const {
    unsigned bits = (1u << remedies_.size()) - 1;
    const double needed = outcome_of(bits).memory.needed;
    for (std::size_t i = remedies_.size(); i-- > 0;) {
      const unsigned without = bits & ~(1u << i);
      if (without != 0 && outcome_of(without).memory.needed <= 1.02 * needed) bits = without;
    }
    return bits;
  }

  bool contains_found(unsigned bits) const {
    return std::any_of(found_.begin(), found_.end(),
                       [&](const auto& f) { return (bits & f.bits) == f.bits; });
  }

  // Applies the set; its names and cost go into `candidate` where there is one.
  void apply(unsigned bits, Request& request, Split& split, Candidate* candidate) const {
    for (std::size_t i = 0; i < remedies_.size(); ++i) {
      if ((bits >> i & 1) == 0 || !remedies_[i].apply(request, split) || candidate == nullptr) continue;
      candidate->cost += remedies_[i].cost;
      candidate->change.change += (candidate->change.change.empty() ? "" : " + ") + remedies_[i].name;
    }
  }

  struct Outcome {
    MemoryPrediction memory;
    Fits fits = Fits::No;
  };

  Outcome outcome_of(unsigned bits) const {
    Request request = plan_.request;
    Split split = plan_.splits.back().split;
    apply(bits, request, split, nullptr);
    Outcome outcome{MemoryModel(shapes_(request), request, plan_.device).predict(split)};
    outcome.fits = fits_within(outcome.memory, request, plan_.device, plan_.limit_bytes);
    return outcome;
  }

  Candidate predict(unsigned bits) const {
    Request request = plan_.request;
    Split split = plan_.splits.back().split;
    Candidate candidate;
    candidate.bits = bits;
    apply(bits, request, split, &candidate);
    const ModelShape& shape = shapes_(request);
    const MemoryPrediction memory = MemoryModel(shape, request, plan_.device).predict(split);
    const Factors factors = memory_factors(request, plan_.device, request.counter);
    const double mid = memory.in(request.counter);
    candidate.change.needed_bytes = memory.needed;
    candidate.change.peak_bytes = {mid * factors.low, mid, mid * factors.high};
    candidate.change.step_seconds = TimeModel(shape, request, plan_.device).predict(split).total();
    candidate.change.fits = fits_within(memory, request, plan_.device, plan_.limit_bytes);
    return candidate;
  }

  const Plan& plan_;
  const ShapeSource& shapes_;
  std::vector<Remedy> remedies_;
  std::vector<Candidate> found_;
};

}  // namespace

std::vector<Change> changes_that_help(const Plan& plan, const ShapeSource& shapes) {
  return Search(plan, shapes).run();
}

}  // namespace batchwright::plan
