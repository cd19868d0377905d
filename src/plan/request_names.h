#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "plan/request.h"

namespace batchwright::plan {

// The words of a request's keys with a closed set of values: one table each, read and printed alike.
template <typename E, std::size_t N>
using NameTable = std::array<std::pair<std::string_view, E>, N>;

inline constexpr NameTable<Task, 4> kTasks = {{{"causal-lm", Task::CausalLm},
                                               {"sequence-classification", Task::SequenceClassification},
                                               {"token-classification", Task::TokenClassification},
                                               {"question-answering", Task::QuestionAnswering}}};
inline constexpr NameTable<Method, 3> kMethods = {
    {{"full", Method::Full}, {"lora", Method::Lora}, {"qlora", Method::Qlora}}};
inline constexpr NameTable<WeightType, 7> kWeightTypes = {{{"fp32", WeightType::Fp32},
                                                           {"bf16", WeightType::Bf16},
                                                           {"fp16", WeightType::Fp16},
                                                           {"nf4", WeightType::Nf4},
                                                           {"nf4-double", WeightType::Nf4Double},
                                                           {"int4", WeightType::Int4},
                                                           {"int8", WeightType::Int8}}};
inline constexpr NameTable<ComputeType, 4> kComputeTypes = {{{"fp32", ComputeType::Fp32},
                                                             {"tf32", ComputeType::Tf32},
                                                             {"bf16", ComputeType::Bf16},
                                                             {"fp16", ComputeType::Fp16}}};
inline constexpr NameTable<Optimizer, 6> kOptimizers = {{{"adamw", Optimizer::AdamW},
                                                         {"adamw-fused", Optimizer::AdamWFused},
                                                         {"adamw-8bit", Optimizer::AdamW8bit},
                                                         {"paged-adamw-8bit", Optimizer::PagedAdamW8bit},
                                                         {"sgd", Optimizer::Sgd},
                                                         {"adafactor", Optimizer::Adafactor}}};
inline constexpr NameTable<Checkpointing, 3> kCheckpointings = {
    {{"none", Checkpointing::None}, {"full", Checkpointing::Full}, {"selective", Checkpointing::Selective}}};
inline constexpr NameTable<Attention, 3> kAttentions = {
    {{"eager", Attention::Eager}, {"sdpa", Attention::Sdpa}, {"flash", Attention::Flash}}};
inline constexpr NameTable<Loss, 3> kLosses = {
    {{"full-logits", Loss::FullLogits}, {"fused", Loss::Fused}, {"chunked", Loss::Chunked}}};
inline constexpr NameTable<Sharding, 6> kShardings = {{{"none", Sharding::None},
                                                       {"ddp", Sharding::Ddp},
                                                       {"zero1", Sharding::Zero1},
                                                       {"zero2", Sharding::Zero2},
                                                       {"zero3", Sharding::Zero3},
                                                       {"fsdp", Sharding::Fsdp}}};
inline constexpr NameTable<Offload, 3> kOffloads = {
    {{"none", Offload::None}, {"optimizer", Offload::Optimizer}, {"all", Offload::All}}};
inline constexpr NameTable<Framework, 5> kFrameworks = {{{"transformers", Framework::Transformers},
                                                         {"pytorch", Framework::PyTorch},
                                                         {"native", Framework::Native},
                                                         {"litgpt", Framework::LitGpt},
                                                         {"torchtune", Framework::TorchTune}}};
inline constexpr NameTable<AdapterType, 2> kAdapterTypes = {
    {{"fp32", AdapterType::Fp32}, {"bf16", AdapterType::Bf16}}};
inline constexpr NameTable<Counter, 3> kCounters = {
    {{"allocated", Counter::Allocated}, {"reserved", Counter::Reserved}, {"process", Counter::Process}}};

}  // namespace batchwright::plan
