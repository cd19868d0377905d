#include "run/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cctype>
#include <charconv>
#include <limits>
#include <utility>

#include "base/error.h"

namespace batchwright::run {
namespace {

constexpr std::int64_t kMostInteger = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMostEffectiveBatch = 1 << 24;  // far above any use; keeps products inside 64 bits

template <typename Enum, std::size_t N>
using NameTable = std::array<std::pair<std::string_view, Enum>, N>;

constexpr NameTable<Method, 2> kMethods = {{{"full", Method::Full}, {"lora", Method::Lora}}};
constexpr NameTable<Schedule, 3> kSchedules = {
    {{"linear", Schedule::Linear}, {"cosine", Schedule::Cosine}, {"constant", Schedule::Constant}}};

template <typename Enum, std::size_t N>
Enum parse_name(const NameTable<Enum, N>& table, std::string_view text, const std::string& subject) {
  std::vector<std::string_view> names;
  for (const auto& [name, value] : table) {
    if (name == text) return value;
    names.push_back(name);
  }
  throw Error(ErrorKind::Usage, subject, fmt::format("'{}' is not known", text),
              fmt::format("Choose one of {}", fmt::join(names, ", ")));
}

template <typename Enum, std::size_t N>
std::string name_of(const NameTable<Enum, N>& table, Enum value) {
  for (const auto& [name, candidate] : table) {
    if (candidate == value) return std::string(name);
  }
  return "";
}

void require(bool holds, const char* option, const std::string& message, const std::string& hint = "") {
  if (!holds) throw Error(ErrorKind::Usage, option, message, hint);
}

void require_choice(const std::string& text, const std::vector<std::string_view>& choices,
                    const char* option) {
  for (const std::string_view choice : choices) {
    if (choice == text) return;
  }
  throw Error(ErrorKind::Usage, option, fmt::format("'{}' is not known", text),
              fmt::format("Choose one of {}", fmt::join(choices, ", ")));
}

}  // namespace

Method parse_method(std::string_view text, const std::string& subject) {
  return parse_name(kMethods, text, subject);
}
Schedule parse_schedule(std::string_view text, const std::string& subject) {
  return parse_name(kSchedules, text, subject);
}
std::string method_name(Method method) { return name_of(kMethods, method); }
std::string schedule_name(Schedule schedule) { return name_of(kSchedules, schedule); }

void TrainingOptions::check() const {
  require(effective_batch >= 1 && effective_batch <= kMostEffectiveBatch, "--effective-batch",
          fmt::format("must be between 1 and {}, and is {}", kMostEffectiveBatch, effective_batch),
          "It is the number of examples per optimizer step");
  require(lora.rank >= 1 && lora.rank <= 65536, "--lora-rank",
          fmt::format("must be between 1 and 65536, and is {}", lora.rank));
  require(lora.alpha > 0 && lora.alpha < 1e6, "--lora-alpha",
          fmt::format("must be above 0, and is {}", lora.alpha));
  require(lora.dropout >= 0 && lora.dropout < 1, "--lora-dropout",
          fmt::format("must be at least 0 and below 1, and is {}", lora.dropout));
  require(!lora.targets.empty(), "--lora-targets", "is empty",
          "Name modules, or write all-linear for every linear layer but the head");
  require(max_length >= 2 && max_length <= (1 << 22), "--max-length",
          fmt::format("must be at least 2, and is {}", max_length));
  require(!steps || *steps >= 1, "--steps", fmt::format("must be at least 1, and is {}", steps.value_or(0)));
  require(epochs > 0 && epochs <= 1e6, "--epochs", fmt::format("must be above 0, and is {}", epochs));
  require(learning_rate >= 0 && learning_rate <= 1e3, "--learning-rate",
          fmt::format("must be between 0 and 1000, and is {}", learning_rate));
  require(warmup_steps >= 0, "--warmup-steps", fmt::format("must be at least 0, and is {}", warmup_steps));
  require(weight_decay >= 0 && weight_decay <= 1e3, "--weight-decay",
          fmt::format("must be at least 0, and is {}", weight_decay));
  require(adam_beta1 >= 0 && adam_beta1 < 1, "--adam-beta1",
          fmt::format("must be at least 0 and below 1, and is {}", adam_beta1));
  require(adam_beta2 >= 0 && adam_beta2 < 1, "--adam-beta2",
          fmt::format("must be at least 0 and below 1, and is {}", adam_beta2));
  require(adam_epsilon > 0 && adam_epsilon <= 1, "--adam-epsilon",
          fmt::format("must be above 0 and at most 1, and is {}", adam_epsilon));
  require(clip >= 0 && clip <= 1e9, "--clip",
          fmt::format("must be at least 0 (0: no clipping), and is {}", clip));
  require(!model_dropout || (*model_dropout >= 0 && *model_dropout < 1), "--model-dropout",
          fmt::format("must be at least 0 and below 1, and is {}", model_dropout.value_or(0)));
  require(seed <= static_cast<std::uint64_t>(kMostInteger), "--seed",
          fmt::format("must be at most {}, and is {}", kMostInteger, seed));
  require(eval_fraction >= 0 && eval_fraction < 1, "--eval-fraction",
          fmt::format("must be at least 0 and below 1, and is {}", eval_fraction));
  require(device == "cpu" || device == "cuda" || device == "torch-cpu", "--device",
          fmt::format("must be cpu or cuda, and is '{}'", device));
  require(threads >= 0 && threads <= 4096, "--threads",
          fmt::format("must be between 0 (every core) and 4096, and is {}", threads));
  require(memory_limit_bytes >= 0, "--memory-limit", "must not be negative");
  require_choice(layout, {"auto", "packed", "sorted", "arrival"}, "--layout");
  require(save_every >= 0, "--save-every",
          fmt::format("must be at least 0 (0: never), and is {}", save_every));
  require(keep >= 1 && keep <= 1000, "--keep", fmt::format("must be between 1 and 1000, and is {}", keep));
  require_choice(checkpointing, {"none", "selective", "full"}, "--checkpointing");
  require_choice(precision, {"fp32", "bf16", "fp16", "pure-bf16"}, "--precision");
  require(loss_scale >= 1 && loss_scale <= 1e30, "--loss-scale",
          fmt::format("must be between 1 and 1e30, and is {}", loss_scale));
  require(loss_scale_interval >= 1, "--loss-scale-interval",
          fmt::format("must be at least 1, and is {}", loss_scale_interval));
}

Json to_json(const TrainingOptions& options) {
  return {{"effective_batch", options.effective_batch},
          {"method", method_name(options.method)},
          {"lora_rank", options.lora.rank},
          {"lora_alpha", options.lora.alpha},
          {"lora_dropout", options.lora.dropout},
          {"lora_targets", options.lora.targets},
          {"lora_rank_stabilised", options.lora.rank_stabilised},
          {"lora_extra_trained", options.lora.extra_trained},
          {"max_length", options.max_length},
          {"steps", options.steps ? Json(*options.steps) : Json()},
          {"epochs", options.epochs},
          {"learning_rate", options.learning_rate},
          {"warmup_steps", options.warmup_steps},
          {"schedule", schedule_name(options.schedule)},
          {"weight_decay", options.weight_decay},
          {"adam_beta1", options.adam_beta1},
          {"adam_beta2", options.adam_beta2},
          {"adam_epsilon", options.adam_epsilon},
          {"clip", options.clip},
          {"model_dropout", options.model_dropout ? Json(*options.model_dropout) : Json()},
          {"seed", options.seed},
          {"eval_fraction", options.eval_fraction},
          {"device", options.device},
          {"threads", options.threads},
          {"memory_limit", options.memory_limit_bytes},
          {"layout", options.layout},
          {"checkpointing", options.checkpointing},
          {"precision", options.precision},
          {"loss_scale", options.loss_scale},
          {"loss_scale_interval", options.loss_scale_interval},
          {"save_every", options.save_every},
          {"keep", options.keep}};
}

Json deciding_options(const TrainingOptions& options) {
  Json deciding = to_json(options);
  for (const char* name :
       {"device", "threads", "memory_limit", "layout", "checkpointing", "save_every", "keep"}) {
    deciding.erase(name);
  }
  return deciding;
}

TrainingOptions training_options_from_json(const Json& object, const std::string& subject) {
  const JsonFields fields(object, subject);
  fields.reject_unknown({"effective_batch",
                         "method",
                         "lora_rank",
                         "lora_alpha",
                         "lora_dropout",
                         "lora_targets",
                         "lora_rank_stabilised",
                         "lora_extra_trained",
                         "max_length",
                         "steps",
                         "epochs",
                         "learning_rate",
                         "warmup_steps",
                         "schedule",
                         "weight_decay",
                         "adam_beta1",
                         "adam_beta2",
                         "adam_epsilon",
                         "clip",
                         "model_dropout",
                         "seed",
                         "eval_fraction",
                         "device",
                         "threads",
                         "memory_limit",
                         "layout",
                         "checkpointing",
                         "save_every",
                         "keep",
                         "precision",
                         "loss_scale",
                         "loss_scale_interval"});
  constexpr double kAny = std::numeric_limits<double>::max();
  TrainingOptions options;
  options.effective_batch = fields.integer("effective_batch", 0, kMostInteger);
  options.method = parse_method(fields.text("method", "full"), subject + ": method");
  options.lora.rank = fields.integer("lora_rank", 0, kMostInteger, options.lora.rank);
  options.lora.alpha = fields.number("lora_alpha", -kAny, kAny, options.lora.alpha);
  options.lora.dropout = fields.number("lora_dropout", -kAny, kAny, options.lora.dropout);
  if (fields.has("lora_targets")) options.lora.targets = fields.texts("lora_targets");
  options.lora.rank_stabilised = fields.boolean("lora_rank_stabilised", false);
  options.lora.extra_trained = fields.texts("lora_extra_trained");
  options.max_length = fields.integer("max_length", 0, kMostInteger, options.max_length);
  options.steps = fields.maybe_integer("steps", 0, kMostInteger);
  options.epochs = fields.number("epochs", -kAny, kAny, options.epochs);
  options.learning_rate = fields.number("learning_rate", -kAny, kAny, options.learning_rate);
  options.warmup_steps = fields.integer("warmup_steps", 0, kMostInteger, options.warmup_steps);
  options.schedule = parse_schedule(fields.text("schedule", "linear"), subject + ": schedule");
  options.weight_decay = fields.number("weight_decay", -kAny, kAny, options.weight_decay);
  options.adam_beta1 = fields.number("adam_beta1", -kAny, kAny, options.adam_beta1);
  options.adam_beta2 = fields.number("adam_beta2", -kAny, kAny, options.adam_beta2);
  options.adam_epsilon = fields.number("adam_epsilon", -kAny, kAny, options.adam_epsilon);
  options.clip = fields.number("clip", -kAny, kAny, options.clip);
  options.model_dropout = fields.maybe_number("model_dropout", -kAny, kAny);
  options.seed = static_cast<std::uint64_t>(fields.integer("seed", 0, kMostInteger, 0));
  options.eval_fraction = fields.number("eval_fraction", -kAny, kAny, options.eval_fraction);
  options.device = fields.text("device", options.device);
  options.threads = static_cast<int>(fields.integer("threads", 0, 4096, options.threads));
  options.memory_limit_bytes = fields.integer("memory_limit", 0, kMostInteger, 0);
  options.layout = fields.text("layout", options.layout);
  options.checkpointing = fields.text("checkpointing", options.checkpointing);
  options.precision = fields.text("precision", options.precision);
  options.loss_scale = fields.number("loss_scale", -kAny, kAny, options.loss_scale);
  options.loss_scale_interval =
      fields.integer("loss_scale_interval", 0, kMostInteger, options.loss_scale_interval);
  options.save_every = fields.integer("save_every", 0, kMostInteger, options.save_every);
  options.keep = fields.integer("keep", 1, 1000, options.keep);
  options.check();
  return options;
}

Split parse_split(const std::string& text, const std::string& subject) {
  const auto fail = [&](const std::string& message) -> Split {
    throw Error(ErrorKind::Usage, subject, fmt::format("'{}' {}", text, message),
                "Write micro-batch x accumulation steps, like 8x4, or with devices 8x4x2");
  };
  std::vector<std::int64_t> factors;
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  while (true) {
    std::int64_t value = 0;
    const auto [next, error] = std::from_chars(at, end, value);
    if (error != std::errc() || next == at) return fail("is not a split");
    if (value < 1 || value > kMostEffectiveBatch) {
      return fail(fmt::format("has a factor outside 1 to {}", kMostEffectiveBatch));
    }
    factors.push_back(value);
    if (next == end) break;
    if (*next != 'x' || factors.size() == 3) return fail("is not a split");
    at = next + 1;
  }
  if (factors.size() < 2) return fail("is not a split");
  // Each factor is at most 2^24, so the product of two fits and the third is checked by division.
  const std::int64_t devices = factors.size() == 3 ? factors[2] : 1;
  if (factors[0] * factors[1] > kMostEffectiveBatch / devices) {
    return fail(fmt::format("is more than {} examples", kMostEffectiveBatch));
  }
  return {factors[0], factors[1], devices, 0};
}

std::string to_string(const Split& split) {
  if (split.is_token_cut()) return fmt::format("{} tokens", split.micro_tokens);
  const std::string text = fmt::format("{}x{}", split.micro_batch, split.accumulation_steps);
  return split.devices > 1 ? fmt::format("{}x{}", text, split.devices) : text;
}

Split on_devices(const Split& split, std::int64_t devices, const std::string& subject) {
  if (split.is_token_cut()) return {0, 0, devices, split.micro_tokens};
  const std::int64_t effective_batch = split.effective_batch();
  if (devices < 1 || effective_batch % devices != 0) {
    std::vector<std::int64_t> possible;
    for (std::int64_t d = 1;
         d <= std::min<std::int64_t>(effective_batch, 2 * std::max<std::int64_t>(devices, 1)); ++d) {
      if (effective_batch % d == 0) possible.push_back(d);
    }
    throw Error(
        ErrorKind::Usage, subject,
        fmt::format("{} devices cannot share an effective batch of {} evenly", devices, effective_batch),
        fmt::format("It can be shared by {}", fmt::join(possible, ", ")));
  }
  const std::int64_t share = effective_batch / devices;
  std::int64_t micro = std::min(split.micro_batch, share);
  while (share % micro != 0) --micro;
  return {micro, share / micro, devices, 0};
}

namespace {
constexpr std::array<std::string_view, 4> kJobModes = {"trials", "train", "dump",
                                                       "verify"};  // in the order of JobMode

bool has_split(const EngineJob& job) { return job.mode == JobMode::Train || job.mode == JobMode::Dump; }

Split split_of_job(const JsonFields& fields, const TrainingOptions& options, const std::string& subject) {
  if (const auto tokens = fields.maybe_integer("micro_tokens", 1, kMostInteger))
    return Split::of_tokens(*tokens);
  const Split split = parse_split(fields.text("split"), subject + ": split");
  if (split.effective_batch() != options.effective_batch) {
    throw Error(ErrorKind::InvalidInput, subject,
                fmt::format("split {} makes {} examples a step, and effective_batch is {}", to_string(split),
                            split.effective_batch(), options.effective_batch));
  }
  return split;
}
}  // namespace

Json to_json(const EngineJob& job) {
  return {
      {"version", 1},
      {"mode", kJobModes[static_cast<std::size_t>(job.mode)]},
      {"model_folder", job.model_folder},
      {"token_file", job.token_file},
      {"run_folder", job.run_folder},
      {"adapter_folder", job.adapter_folder},
      {"trace_file", job.trace_file},
      {"split", has_split(job) && !job.split.is_token_cut() ? Json(to_string(job.split)) : Json()},
      {"micro_tokens", has_split(job) && job.split.is_token_cut() ? Json(job.split.micro_tokens) : Json()},
      {"options", to_json(job.options)}};
}

EngineJob engine_job_from_json(const Json& object, const std::string& subject) {
  const JsonFields fields(object, subject);
  fields.integer("version", 1, 1);
  fields.reject_unknown({"version", "mode", "model_folder", "token_file", "run_folder", "adapter_folder",
                         "trace_file", "split", "micro_tokens", "options"});
  EngineJob job;
  const std::string mode = fields.text("mode");
  const auto found = std::find(kJobModes.begin(), kJobModes.end(), mode);
  if (found == kJobModes.end()) {
    throw Error(ErrorKind::InvalidInput, subject, fmt::format("\"mode\" '{}' is not known", mode),
                fmt::format("Known are {}", fmt::join(kJobModes, ", ")));
  }
  job.mode = static_cast<JobMode>(found - kJobModes.begin());
  job.model_folder = fields.text("model_folder");
  job.token_file = fields.text("token_file");
  job.run_folder = fields.text("run_folder", "");
  job.adapter_folder = fields.text("adapter_folder", "");
  job.trace_file = fields.text("trace_file", "");
  const Json* options = fields.find("options");
  if (options == nullptr) throw Error(ErrorKind::InvalidInput, subject, "\"options\" is missing");
  job.options = training_options_from_json(*options, subject + ": options");
  if (has_split(job)) job.split = split_of_job(fields, job.options, subject);
  return job;
}

}  // namespace batchwright::run
