#include "plan/request.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/files.h"
#include "plan/request_names.h"

namespace batchwright::plan {
namespace {

constexpr std::int64_t kMaxLength = 1 << 24, kMaxBatch = 1ll << 31, kMaxDevices = 1 << 20;

// Reads the keys of one request and notes what it had to assume.
class Reader {
 public:
  Reader(const Json& document, const std::string& subject, Request& request)
      : fields_(document, subject), subject_(subject), request_(request) {}

  template <typename E, std::size_t N>
  void choice(std::string_view key, const NameTable<E, N>& names, E& value) {
    if (!fields_.has(key)) return assume(key, std::string(name_of(value)));
    const std::string word = fields_.text(key);
    std::vector<std::string_view> known;
    for (const auto& [name, candidate] : names) {
      if (name == word) {
        value = candidate;
        return;
      }
      known.push_back(name);
    }
    const std::string near = nearest_choice(word, known);
    fail(key, fmt::format("has no value \"{}\"", word.substr(0, 40)),
         near.empty() ? fmt::format("Use one of {}", fmt::join(known, ", "))
                      : fmt::format("Did you mean \"{}\"?", near));
  }

  void assume(std::string_view key, std::string value) {
    request_.assumed.emplace_back(key, std::move(value));
  }

  [[noreturn]] void fail(std::string_view key, const std::string& message, const std::string& hint) const {
    throw Error(ErrorKind::InvalidInput, subject_, fmt::format("field \"{}\" {}", key, message), hint);
  }

  const JsonFields& fields() const { return fields_; }

 private:
  JsonFields fields_;
  std::string subject_;
  Request& request_;
};

LengthHistogram histogram_of(const std::map<std::int64_t, std::int64_t>& counts) {
  LengthHistogram histogram;
  histogram.counts.assign(counts.begin(), counts.end());
  return histogram;
}

// [12, 40, 40] or [[12, 1], [40, 2]]: lengths, or lengths with how often each occurs.
LengthHistogram lengths_from_list(const Json& list, const Reader& reader) {
  std::map<std::int64_t, std::int64_t> counts;
  std::int64_t rows = 0;
  for (const Json& item : list) {
    const bool pair = item.is_array() && item.size() == 2;
    const Json& length = pair ? item[0] : item;
    const std::int64_t count =
        pair && item[1].is_number_integer() ? item[1].get<std::int64_t>() : (pair ? 0 : 1);
    if (!length.is_number_integer() || count < 1 || count > kMaxBatch || length.get<std::int64_t>() < 1 ||
        length.get<std::int64_t>() > kMaxLength) {
      reader.fail("lengths",
                  fmt::format("must hold lengths from 1 to {}, or [length, count] pairs", kMaxLength), "");
    }
    counts[length.get<std::int64_t>()] += count;
    if ((rows += count) > (1ll << 50)) reader.fail("lengths", "holds too many rows", "");
  }
  if (counts.empty()) reader.fail("lengths", "is empty", "");
  return histogram_of(counts);
}

LengthHistogram lengths_from_file(const std::string& path, const Reader& reader) {
  const std::string text = read_file(path, 64 << 20);
  return lengths_from_list(parse_json(text.find('[') == std::string::npos ? "[" + text + "]" : text, path),
                           reader);
}

void read_lengths(Reader& reader, Request& request) {
  const JsonFields& fields = reader.fields();
  const Json* lengths = fields.find("lengths");
  if (lengths != nullptr && fields.has("seq_len")) {
    reader.fail("lengths", "and \"seq_len\" exclude each other", "Give one of them");
  }
  if (lengths == nullptr) {
    request.lengths.counts = {{fields.integer("seq_len", 1, kMaxLength), 1}};
  } else if (lengths->is_string()) {
    request.lengths = lengths_from_file(lengths->get<std::string>(), reader);
  } else if (lengths->is_array()) {
    request.lengths = lengths_from_list(*lengths, reader);
  } else {
    reader.fail("lengths", "must be a file's name or a list", "");
  }
}

void read_method(Reader& reader, Request& request) {
  const JsonFields& fields = reader.fields();
  reader.choice("method", kMethods, request.method);
  const bool adapters = request.method != Method::Full;
  request.weights = request.method == Method::Full   ? WeightType::Fp32
                    : request.method == Method::Lora ? WeightType::Bf16
                                                     : WeightType::Nf4;
  request.weights_given = fields.has("weights");
  if (request.weights_given) reader.choice("weights", kWeightTypes, request.weights);
  request.compute = request.weights == WeightType::Fp16 || request.weights == WeightType::Int4
                        ? ComputeType::Fp16
                        : ComputeType::Bf16;
  request.compute_given = fields.has("compute");
  if (request.compute_given) reader.choice("compute", kComputeTypes, request.compute);
  if (adapters) {
    if (!fields.has("lora_rank")) reader.assume("lora_rank", std::to_string(request.lora_rank));
    request.lora_rank = fields.integer("lora_rank", 1, 1 << 16, request.lora_rank);
    if (const Json* targets = fields.find("lora_targets"); targets != nullptr && targets->is_string()) {
      request.lora_targets = {targets->get<std::string>()};
    } else if (targets != nullptr) {
      request.lora_targets = fields.texts("lora_targets");
      if (request.lora_targets.empty())
        reader.fail("lora_targets", "is empty", "Use \"all-linear\" or module names");
    } else {
      reader.assume("lora_targets", "all-linear");
    }
    request.lora_extra_trained = fields.texts("lora_extra_trained");
    reader.choice("adapter_weights", kAdapterTypes, request.adapter_weights);
  }
}

void read_batch(Reader& reader, Request& request) {
  const JsonFields& fields = reader.fields();
  request.effective_batch = fields.integer("effective_batch", 1, kMaxBatch);
  request.devices = fields.integer("devices", 1, kMaxDevices, 1);
  request.micro_batch = fields.maybe_integer("micro_batch", 1, kMaxBatch);
  if (request.devices > request.effective_batch) {
    reader.fail(
        "devices",
        fmt::format("is {}, more than the effective batch of {}", request.devices, request.effective_batch),
        "Every device needs at least one example a step");
  }
  if (request.micro_batch && *request.micro_batch > request.effective_batch / request.devices) {
    reader.fail(
        "micro_batch",
        fmt::format("is {}: on {} device{} that is more than the effective batch of {}", *request.micro_batch,
                    request.devices, request.devices == 1 ? "" : "s", request.effective_batch),
        fmt::format("The largest is {}", request.effective_batch / request.devices));
  }
  request.base_effective_batch = fields.maybe_integer("base_effective_batch", 1, kMaxBatch);
  request.base_learning_rate = fields.maybe_number("base_learning_rate", 1e-12, 1e3);
  request.warmup_steps = fields.maybe_integer("warmup_steps", 0, 1ll << 40);
  request.lr_rule = fields.text("lr_rule", "linear");
  if (request.lr_rule != "linear" && request.lr_rule != "sqrt") {
    reader.fail("lr_rule", fmt::format("has no value \"{}\"", request.lr_rule.substr(0, 40)),
                "Use linear or sqrt");
  }
}

void read_device(Reader& reader, Request& request) {
  const JsonFields& fields = reader.fields();
  const Json* gpu = fields.find("gpu");
  if (gpu != nullptr && gpu->is_object()) {
    request.gpu_facts = *gpu;
    request.gpu = "described";
  } else {
    request.gpu = fields.text("gpu", "auto");
    if (gpu == nullptr) reader.assume("gpu", "auto");
  }
  request.memory_bytes = fields.maybe_integer("memory_bytes", 1, 1ll << 60);
  reader.choice("counter", kCounters, request.counter);
  request.headroom = fields.number("headroom", 0, 0.9, request.headroom);
}

bool quantised(WeightType weights) {
  return weights == WeightType::Nf4 || weights == WeightType::Nf4Double || weights == WeightType::Int4 ||
         weights == WeightType::Int8;
}

// Combinations that no run can have.
void refuse_contradictions(const Reader& reader, const Request& request) {
  if (request.method == Method::Full && quantised(request.weights)) {
    reader.fail(
        "weights",
        fmt::format("is {}, and quantised weights cannot be trained in full", name_of(request.weights)),
        "Use method qlora, or weights bf16 or fp32");
  }
  if (request.method == Method::Qlora && !quantised(request.weights)) {
    reader.fail("weights", fmt::format("is {}, and qlora means quantised weights", name_of(request.weights)),
                "Use nf4, nf4-double, int4 or int8, or method lora");
  }
  if (request.framework != Framework::Native) return;
  if (request.weights_given && request.weights != WeightType::Fp32) {
    reader.fail("weights",
                fmt::format("is {}, and batchwright-engine trains fp32 weights", name_of(request.weights)),
                "Leave it out, or plan for another framework");
  }
  if (request.compute_given && request.compute != ComputeType::Fp32) {
    reader.fail("compute",
                fmt::format("is {}, and batchwright-engine computes in fp32", name_of(request.compute)),
                "Leave it out, or plan for another framework");
  }
  if (request.method == Method::Qlora) {
    reader.fail("method", "is qlora, and batchwright-engine has no quantised weights", "Use full or lora");
  }
}

// bitsandbytes' types; GPTQ's int4 is left alone by the preparation (peft.utils.other).
bool upcasts(WeightType weights) {
  return weights == WeightType::Nf4 || weights == WeightType::Nf4Double || weights == WeightType::Int8;
}

void read_preparation(const JsonFields& fields, Reader& reader, Request& request) {
  if (request.method != Method::Qlora) {
    if (fields.has("kbit_preparation") && fields.boolean("kbit_preparation", false)) {
      reader.fail("kbit_preparation", "is for method qlora", "Leave it out");
    }
    return;
  }
  const bool usual = request.framework == Framework::Transformers && upcasts(request.weights);
  if (!fields.has("kbit_preparation")) reader.assume("kbit_preparation", usual ? "true" : "false");
  request.kbit_preparation = fields.boolean("kbit_preparation", usual) && upcasts(request.weights);
}

}  // namespace

void settle_types(Request& request, bool cpu, bool has_bf16) {
  const bool fp32 = cpu || request.framework == Framework::Native;
  const bool sixteen = request.weights == WeightType::Bf16 || request.weights == WeightType::Fp16;
  if (!request.weights_given) {
    // Adapters usually stand on 16-bit weights; on a CPU those are slower than fp32.
    if (sixteen && fp32 && !request.compute_given) request.weights = WeightType::Fp32;
    if (request.weights == WeightType::Bf16 && !fp32 && !has_bf16) request.weights = WeightType::Fp16;
    request.assumed.emplace_back("weights", std::string(name_of(request.weights)));
  }
  if (!request.compute_given) {
    if (fp32 && (request.weights == WeightType::Fp32 || request.method == Method::Qlora)) {
      request.compute = ComputeType::Fp32;
    } else if (!has_bf16 || request.weights == WeightType::Fp16 || request.weights == WeightType::Int4) {
      request.compute = ComputeType::Fp16;
    } else {
      request.compute = ComputeType::Bf16;
    }
    request.assumed.emplace_back("compute", std::string(name_of(request.compute)));
  }
}

Request parse_request(const Json& document, const std::string& subject) {
  Request request;
  Reader reader(document, subject, request);
  reader.fields().reject_unknown(request_keys());
  request.model = reader.fields().text("model");
  request.task_given = reader.fields().has("task");
  if (request.task_given) reader.choice("task", kTasks, request.task);
  read_method(reader, request);
  read_batch(reader, request);
  read_lengths(reader, request);
  read_device(reader, request);
  reader.choice("optimizer", kOptimizers, request.optimizer);
  reader.choice("checkpointing", kCheckpointings, request.checkpointing);
  reader.choice("attention", kAttentions, request.attention);
  reader.choice("loss", kLosses, request.loss);
  request.sharding = request.devices > 1 ? Sharding::Ddp : Sharding::None;
  if (reader.fields().has("sharding") || request.devices > 1)
    reader.choice("sharding", kShardings, request.sharding);
  if (reader.fields().has("offload")) reader.choice("offload", kOffloads, request.offload);
  reader.choice("framework", kFrameworks, request.framework);
  read_preparation(reader.fields(), reader, request);
  refuse_contradictions(reader, request);
  return request;
}

}  // namespace batchwright::plan
