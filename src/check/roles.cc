#include "check/roles.h"

#include <algorithm>
#include <cctype>

namespace batchwright::check {

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

std::string_view last_part(std::string_view dotted) {
  if (dotted.ends_with("[]")) dotted.remove_suffix(2);  // one of several of that name
  while (!dotted.empty() && (dotted.back() == ']' || dotted.back() == '"' || dotted.back() == '\''))
    dotted.remove_suffix(1);
  const auto at = dotted.find_last_of(".[\"'");
  return at == std::string_view::npos ? dotted : dotted.substr(at + 1);
}

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool contains_any(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

bool has_part(std::string_view word, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(), [&](std::string_view part) {
    for (auto at = word.find(part); at != std::string_view::npos; at = word.find(part, at + 1))
      if (at == 0 || !std::isalnum(static_cast<unsigned char>(word[at - 1]))) return true;
    return false;
  });
}

bool names_accumulation(std::string_view name) {
  const std::string word = lower(last_part(name));
  if (contains_any(word,
                   {"loss", "dtype", "accumulator", "grads", "accuracy", "token", "logit", "metric", "hook"}))
    return false;
  if (word == "gas" || word == "ga" || word == "acc_steps" || word == "iter_size" || word == "update_freq" ||
      word == "accum" || word == "accumulate" || word == "accumulation" || word == "n_accum" ||
      word == "k_steps" || word == "update_every" || word == "backward_passes_per_step" ||
      word == "subdivisions" || word == "ga_steps" || word == "acc_iter" || word == "virtual_batch" ||
      word == "every_k_schedule" || word == "update_interval")
    return true;
  if (contains_any(
          word,
          {"accum_step",        "accum_iter",  "accumulation",   "accumulate_",      "accum_freq",
           "accum_every",       "grad_accum",  "gradaccum",      "grad_acc",         "gradient_acc",
           "accumulation_step", "accum_batch", "accumsteps",     "num_accum",        "steps_per_update",
           "micro_batches_per", "num_micro",   "num_microbatch", "num_gradients",    "num_split",
           "num_shards",        "num_sub",     "num_minib",      "micro_steps_per",  "micro_per_",
           "num_chunks",        "accumulates", "accum_n",        "batches_per_step", "batches_per_update",
           "accum_grad"}) ||
      has_part(word,
               {"n_micro", "n_gradients", "n_split", "n_shards", "n_sub", "n_minib", "n_chunks", "n_acc"}))
    return !contains_any(word, {"micro_batch_size", "count", "_idx", "index", "current", "cur_"});
  return false;
}

bool names_epoch_length(std::string_view name) {
  const std::string word = lower(last_part(name));
  return contains_any(word, {"num_batches", "n_batches", "nb_batches", "total_batches", "batches_per_epoch",
                             "steps_per_epoch", "iters_per_epoch", "iter_per_epoch", "loader_len",
                             "len_loader", "loader_length", "epoch_length", "epoch_steps", "steps_in_epoch",
                             "num_training_batches", "batch_n_steps", "num_iters", "n_iters", "n_iter"}) ||
         word == "iters" || word == "nb" || word == "num_steps" || word == "n_steps" || word == "total_iters";
}

bool names_epoch_period(std::string_view name) {
  const std::string word = lower(last_part(name));
  return names_epoch_length(word) && contains_any(word, {"epoch", "loader"});
}

bool names_run_length(std::string_view name) {
  const std::string word = lower(last_part(name));
  return !contains_any(word, {"warm"}) &&
         (contains_any(word, {"max_", "total", "num_steps", "n_steps", "n_iters", "num_iters", "num_updates",
                              "train_steps", "train_iters", "num_train", "training_steps"}) ||
          word == "iters" || word == "maxiter" || word == "steps");
}

bool names_window_count(std::string_view name) {
  const std::string word = lower(last_part(name));
  return contains_any(
      word, {"num_items",     "total_tok",      "global_tok",   "total_num_tok",    "num_tokens_in_batch",
             "total_valid",   "total_label",    "window_tok",   "total_target",     "total_example",
             "total_items",   "global_num_tok", "total_weight", "step_tokens",      "batch_tokens",
             "batch_num_tok", "total_samples",  "total_count",  "global_batch_tok", "n_items",
             "total_ntok",    "total_n_tok",    "n_datapoint",  "num_datapoint",    "dataset_size",
             "normalization", "sample_size"});
}

bool names_count(std::string_view name) {
  const std::string word = lower(last_part(name));
  return names_window_count(name) || word.starts_with("num_") || word.starts_with("n_") ||
         word.starts_with("ntok") ||
         contains_any(word, {"count", "tokens", "num_items", "n_items", "numel", "denom", "valid", "mask_sum",
                             "ntokens", "bsz", "batch_size", "n_examples", "total_len", "labelled", "labeled",
                             "items"});
}

bool names_share(std::string_view name) {
  return contains_any(lower(last_part(name)), {"frac", "proportion", "portion"});
}

bool names_micro_batches(std::string_view text) {
  const std::string word = lower(text);
  if (contains_any(word, {"accum"})) return contains_any(word, {"step", "range", "iter", "batch"});
  return contains_any(word, {"micro", "chunk", "split", "sub", "mini", "shard", "slice", "pieces", "parts"});
}

// PyTorch's name, and PaddlePaddle's.
bool zeroes_by_name(std::string_view name) {
  return is_one_of(name, {"zero_grad", "clear_grad", "clear_gradients"});
}

bool names_ema(std::string_view text) {
  return contains_any(lower(text), {"ema_model", "ema_param", "ema.param", "update_ema", "ema_update",
                                    "model_ema", "ema_net", "ema_state", "ema_weight", "ema_step"});
}

std::optional<Value> guess_number(std::string_view name) {
  const std::string word = lower(last_part(name));
  if (word.empty()) return std::nullopt;
  if (names_accumulation(word)) return number_value(4, kAccumulation);
  if (word == "mbs") return number_value(2, kBatchSize);
  if (word == "local_world_size" ||
      contains_any(word, {"gpus_per_node", "nproc_per_node", "devices_per_node"}))
    return number_value(2, kLocalWorld);
  if (word == "n_gpu" || word == "n_gpus" || word == "num_gpus" || word == "ngpus" || word == "device_count")
    return number_value(2, kLocalWorld);
  if (word == "world_size" || word == "worldsize" || word == "dp_size" || word == "dp_world_size" ||
      word == "num_devices" ||
      contains_any(word, {"num_processes", "num_replicas", "data_parallel_size", "world_size", "num_ranks",
                          "n_procs"}))
    return number_value(2, kWorld);
  if (contains_any(word, {"micro_batch", "microbatch", "micro_bs", "micro_bsz", "mini_batch", "minibatch",
                          "per_device", "per_gpu", "sub_batch", "chunk_size", "device_batch", "mini_bs"}) &&
      !contains_any(word, {"num_", "n_", "_idx", "index"}))
    return number_value(2, kBatchSize);
  if (contains_any(word, {"global_batch", "effective_batch", "total_batch", "target_batch", "logical_batch",
                          "global_bs", "virtual_batch", "desired_batch", "full_batch", "effective_bs",
                          "nominal_batch"}) ||
      word == "nbs")
    return number_value(32, kGlobalBatch);
  if (word == "batch_size" || word == "bs" || word == "bsz" || word == "train_batch_size" ||
      word == "batchsize")
    return number_value(8, kBatchSize);
  if (word == "epochs" || word == "num_epochs" || word == "n_epochs" || word == "max_epochs" ||
      word == "num_train_epochs" || word == "total_epochs" || word == "nepochs" || word == "max_epoch" ||
      word == "epoch_num" || word == "num_epoch" || word == "train_epoch" || word == "train_epochs" ||
      word == "training_epochs" || word == "max_train_epochs" || word == "epochs_num" || word == "n_epoch")
    return number_value(2);
  if (word == "start_epoch" || word == "first_epoch" || word == "starting_epoch" || word == "epoch_start" ||
      word == "last_epoch" || word == "start_step" || word == "resume_step" || word == "initial_step" ||
      word == "start_iter" || word == "epoch" || word == "epoch_idx" || word == "cur_epoch" ||
      word == "current_epoch")
    return number_value(0, kIndex);
  return std::nullopt;
}

Role role_of_name(std::string_view dotted) {
  const std::string word = lower(last_part(dotted));
  if (word.empty()) return Role::None;
  if (contains_any(word, {"sched", "lr_policy", "lr_decay", "warmup"}) || word == "lrs")
    return Role::Scheduler;
  if (contains_any(word, {"scaler"})) return Role::Scaler;
  if (contains_any(word, {"optim", "adam", "sgd"}) || word == "opt" || word.starts_with("opt_") ||
      word.ends_with("_opt") || word.starts_with("opt[") || word == "opts")
    return Role::Optimizer;
  if (contains_any(word, {"accelerator"})) return Role::Accelerator;
  if (contains_any(word, {"fabric"})) return Role::Fabric;
  if (contains_any(word, {"engine"}) || word.starts_with("ds_model")) return Role::Engine;
  if (word == "ema" || word.starts_with("ema_") || word.ends_with("_ema") || word == "model_ema")
    return Role::Ema;
  return Role::None;
}

Role role_of_constructor(std::string_view dotted) {
  const auto name = last_part(dotted);
  const std::string word = lower(name);
  if (name.empty()) return Role::None;
  if (name == "GradScaler" || word.ends_with("gradscaler")) return Role::Scaler;
  if (name == "Accelerator") return Role::Accelerator;
  if (name == "Fabric") return Role::Fabric;
  if (name == "GradientTape") return Role::Tape;
  if (name.ends_with("LR") || name.ends_with("Scheduler") || name.ends_with("WarmRestarts") ||
      name == "ReduceLROnPlateau" || word.ends_with("schedule") ||
      contains_any(word, {"schedule_with", "get_scheduler", "_scheduler", "lambdalr", "warmuplr"}))
    return Role::Scheduler;
  if (contains_any(name, {"EMA", "ExponentialMovingAverage", "AveragedModel"}) || word == "modelema")
    return Role::Ema;
  if (contains_any(name, {"Adam", "SGD", "RMSprop", "Adafactor", "Lion", "LBFGS", "Adagrad", "Adadelta",
                          "Lamb", "LAMB", "Optimizer", "Muon", "Shampoo", "Sophia", "LARS", "Novograd"}) ||
      contains_any(word, {"get_optimizer", "build_optimizer", "create_optimizer", "make_optimizer",
                          "configure_optimizer"}) ||
      dotted.starts_with("torch.optim.") || dotted.starts_with("optim."))
    return Role::Optimizer;
  if (name == "DataLoader" || name.ends_with("DataLoader") ||
      contains_any(word, {"get_loader", "get_dataloader", "build_loader", "make_loader", "create_dataloader",
                          "build_dataloader", "make_dataloader"}))
    return Role::Loader;
  return Role::None;
}

bool usual_side(std::string_view condition) {
  const std::string text = lower(condition);
  return !contains_any(text, {"debug", "eval",  "test",     "resume",  "dry",    "profil",      "skip",
                              "stop",  "done",  "overflow", "isnan",   "isinf",  "nan",         "interrupt",
                              "early", "abort", "freeze",   "frozen",  "is_tpu", "xla",         "tpu",
                              "lbfgs", "lomo",  "error",    "invalid", "empty",  "should_exit", "sam"}) ||
         contains_any(text, {"finite", "not skip", "samp"});
}

}  // namespace batchwright::check
