#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/units.h"
#include "cli/prepared_input.h"
#include "cli/print_decision.h"
#include "cli/training_arguments.h"
#include "cli/tuning.h"
#include "cli/verbs.h"
#include "run/engine.h"
#include "run/training.h"

namespace batchwright::cli {
namespace {

constexpr double kAutoBudgetSeconds = 60;  // of `--split auto` when --budget is not given

struct TrainArguments {
  TrainingArguments training;
  std::string progress = "text";
  std::string trace;
  bool write_job = false;  // for another launcher
};

bool is_finished(const std::filesystem::path& folder) {
  if (!std::filesystem::exists(folder / "summary.json")) return false;
  const Json summary = read_json_file(folder / "summary.json");
  return !(summary.is_object() && summary.contains("interrupted") && summary.at("interrupted") == true);
}

bool has_checkpoint(const std::filesystem::path& folder) {
  std::error_code error;
  const std::filesystem::directory_iterator entries(folder / "checkpoints", error);
  return !error && entries != std::filesystem::directory_iterator();
}

bool can_go_on(const std::filesystem::path& folder) { return has_checkpoint(folder) && !is_finished(folder); }

// A training that was stopped or killed goes on from its checkpoint under the same command; a finished one is
// never touched: without --run the next one gets a folder of its own.
std::filesystem::path training_folder(const TrainArguments& arguments, const Json& request) {
  if (arguments.training.run_folder.empty()) {
    const std::filesystem::path base = default_run_folder("train", request);
    std::filesystem::path folder = base;
    for (int number = 2; std::filesystem::exists(folder) && !can_go_on(folder); ++number)
      folder = run::numbered_folder(base, number);
    return folder;
  }
  const std::filesystem::path folder = arguments.training.run_folder;
  if (arguments.training.overwrite || !std::filesystem::exists(folder / "steps.jsonl") || can_go_on(folder)) {
    return folder;
  }
  run::refuse_folder_in_use(folder);
  throw Error(ErrorKind::Usage, folder.string(),
              is_finished(folder) ? "holds a finished training"
                                  : "holds a training without a checkpoint to go on from",
              "Name another folder with --run, or give --overwrite to replace it");
}

// --overwrite empties the run folder: what this training reads must not lie in it.
void refuse_inside(const std::filesystem::path& folder, const TrainingArguments& arguments) {
  const auto whole = [](const std::filesystem::path& path) {
    return (std::filesystem::weakly_canonical(std::filesystem::absolute(path)) / "").string();
  };
  for (const std::string& word : arguments.words) {
    if (whole(word).starts_with(whole(folder))) {
      throw Error(ErrorKind::Usage, word,
                  fmt::format("lies in {}, which --overwrite would empty", folder.string()),
                  "Name another folder with --run");
    }
  }
}

std::string text_line(const run::StepReport& step, std::int64_t steps) {
  std::string text = fmt::format("step {} of {}", step.step, steps);
  if (step.loss) text += fmt::format(", loss {:.4f}", *step.loss);
  return text + fmt::format(", {} a step", format_seconds(step.seconds));
}

Json json_line(const run::StepReport& step) {
  Json line = parse_json(run::to_line(step), "step");
  line.erase("type");
  return line;
}

std::optional<double> number(const Json& object, const char* name) {
  return object.is_object() && object.contains(name) && object.at(name).is_number()
             ? std::optional(object.at(name).get<double>())
             : std::nullopt;
}

// The task's own metric on the held-out rows (data/metric.h has the names).
std::string describe_metric(const Json& evaluation) {
  const auto percent = [&](const char* name) { return format_percent(number(evaluation, name).value_or(0)); };
  if (number(evaluation, "exact_match")) {
    return fmt::format("Held-out exact match: {}, F1: {} of {:.0f} questions\n", percent("exact_match"),
                       percent("f1"), number(evaluation, "questions").value_or(0));
  }
  if (number(evaluation, "precision")) {
    return fmt::format("Held-out entity F1: {} (precision {}, recall {}) of {:.0f} entities\n", percent("f1"),
                       percent("precision"), percent("recall"), number(evaluation, "entities").value_or(0));
  }
  if (const auto perplexity = number(evaluation, "perplexity")) {
    return fmt::format("Held-out perplexity: {:.4g} over {:.0f} tokens\n", *perplexity,
                       number(evaluation, "targets").value_or(0));
  }
  if (!number(evaluation, "accuracy")) return "";
  const auto examples = number(evaluation, "examples");
  return fmt::format("Held-out accuracy: {}{}\n", percent("accuracy"),
                     examples ? fmt::format(" of {:.0f} examples", *examples) : "");
}

// The numbers of the summary that a person wants to see, whatever else it holds.
std::string describe_summary(const Json& summary) {
  std::string text;
  if (!summary.is_object()) return text;
  const Json evaluation = summary.contains("evaluation") ? summary.at("evaluation") : Json();
  text += describe_metric(evaluation);
  if (evaluation.is_object() && evaluation.contains("error") && evaluation.at("error").is_string())
    text += fmt::format("Not evaluated: {}\n", evaluation.at("error").get<std::string>());
  if (const auto loss = number(evaluation, "loss")) text += fmt::format("Held-out loss: {:.4f}\n", *loss);
  const auto steps = number(summary, "steps"), seconds = number(summary, "seconds");
  const auto planned = number(summary, "planned_steps");
  if (steps && planned && summary.value("interrupted", false)) {
    text += fmt::format("INTERRUPTED after step {:.0f} of {:.0f}; the same command goes on from there\n",
                        *steps, *planned);
  }
  if (steps && seconds) text += fmt::format("Trained {:.0f} steps in {}\n", *steps, format_seconds(*seconds));
  if (summary.contains("model_folder") && summary.at("model_folder").is_string()) {
    text += fmt::format("Model: {}\n", summary.at("model_folder").get<std::string>());
  }
  return text;
}

std::string describe_saving(const tune::Decision& decision, std::int64_t steps) {
  if (!decision.slowest || !decision.recommended) return "";
  const tune::SplitResult& chosen = decision.trials[*decision.recommended];
  const tune::SplitResult& slowest = decision.trials[*decision.slowest];
  const double saved = static_cast<double>(steps) * chosen.step_seconds->mid * (slowest.relative->mid - 1);
  return fmt::format("Against {}, the slowest split, {} saved about {} of training; finding it took {}.\n",
                     run::to_string(slowest.split), run::to_string(chosen.split), format_seconds(saved),
                     format_seconds(decision.tuning_seconds));
}

struct ChosenSplit {
  run::Split split;
  std::optional<tune::Decision> decision;
};

ChosenSplit choose_split(const TrainArguments& arguments, const PreparedInput& input,
                         const std::filesystem::path& folder, InterruptGuard& interrupt, Progress& progress) {
  if (arguments.training.micro_tokens > 0) {
    run::Split split = run::Split::of_tokens(arguments.training.micro_tokens);
    split.devices = std::max<std::int64_t>(1, arguments.training.devices);
    return {split, std::nullopt};
  }
  if (arguments.training.split != "auto") return {split_of(arguments.training), std::nullopt};
  TuningPlan plan;
  plan.input = input;
  plan.options = arguments.training.options;
  plan.devices = {std::max<std::int64_t>(1, arguments.training.devices)};
  plan.budget_seconds = arguments.training.budget_seconds.value_or(kAutoBudgetSeconds);
  plan.run_folder = folder / "tune";
  plan.overwrite = arguments.training.overwrite;
  plan.use_cache = !arguments.training.no_cache;
  const TuningResult result = tune_with_engine(plan, interrupt, progress);
  interrupt.check();
  if (!result.decision.recommended) {
    std::string hint;
    for (const std::string& remedy : result.remedies) hint += (hint.empty() ? "" : " ") + remedy;
    throw Error(ErrorKind::No, "--split auto", result.decision.reason, hint);
  }
  progress.finish();
  if (arguments.progress != "json" && !arguments.training.json) fmt::print("{}\n", describe(result));
  return {result.decision.trials[*result.decision.recommended].split, result.decision};
}

// The split of the run that goes on, so that its steps stay the same bits whatever a new search would say; on
// other devices, with the accumulation steps that keep its effective batch.
run::Split split_that_goes_on(const TrainArguments& arguments, const std::filesystem::path& folder,
                              Progress& progress) {
  const std::filesystem::path file = folder / "job.json";
  const run::Split saved = run::engine_job_from_json(read_json_file(file), file.string()).split;
  const std::int64_t devices = arguments.training.devices == 0 ? saved.devices : arguments.training.devices;
  if (saved.is_token_cut()) return run::on_devices(saved, devices, "--devices");
  const run::Split split = arguments.training.split == "auto" ? run::on_devices(saved, devices, "--devices")
                                                              : split_of(arguments.training);
  if (split.devices != saved.devices) {
    progress.note(
        fmt::format("the run was cut {} for {} device{}, and {} run now: {} keeps its effective batch of {}",
                    run::to_string(saved), saved.devices, saved.devices == 1 ? "" : "s", split.devices,
                    run::to_string(split), saved.effective_batch()));
  }
  return split;
}

int train(const TrainArguments& arguments) {
  InterruptGuard interrupt;
  const bool mirror = arguments.progress == "json";
  Progress progress(stderr, arguments.training.quiet ? Progress::Style::Silent : Progress::style_of(stderr));
  const PreparedInput input =
      prepare_input(model_and_data(arguments.training, "train"), arguments.training, interrupt, progress);
  Json request = request_of("train", input, arguments.training.options);
  request["options"] = run::deciding_options(arguments.training.options);
  request["micro_tokens"] = arguments.training.micro_tokens;
  run::find_engine();  // before a folder is made
  const std::filesystem::path path = training_folder(arguments, request);
  if (arguments.training.overwrite) refuse_inside(path, arguments.training);
  const bool goes_on = !arguments.training.overwrite && can_go_on(path);
  run::RunFolder folder(path, std::move(request), arguments.training.overwrite);
  if (arguments.training.overwrite) {
    for (const char* name : {"checkpoints", "steps.jsonl", "summary.json", "model", "tune"})
      std::filesystem::remove_all(path / name);
  }
  const ChosenSplit chosen = goes_on
                                 ? ChosenSplit{split_that_goes_on(arguments, path, progress), std::nullopt}
                                 : choose_split(arguments, input, path, interrupt, progress);

  run::EngineJob job;
  job.mode = run::JobMode::Train;
  job.model_folder = input.model_folder.string();
  job.token_file = input.token_file.string();
  job.run_folder = std::filesystem::absolute(path).string();
  job.split = chosen.split;
  if (!arguments.trace.empty()) job.trace_file = std::filesystem::absolute(arguments.trace).string();
  job.options = arguments.training.options;
  if (arguments.write_job) {
    const run::WorkerCommand command = run::engine_command(job, path, job.split.devices);
    progress.finish();
    fmt::print("torchrun --nproc-per-node {} --no-python {}\n", job.split.devices,
               fmt::join(command.command, " "));
    return 0;
  }
  const std::int64_t steps = planned_steps(job.options, input.training_rows);
  std::int64_t first_step = 0;  // of this process: a training that goes on does not start at 1
  // Who reads the mirrored steps may go away (`| head`): the training goes on, and its folder has every line.
  bool reader_gone = false;
  if (mirror) std::signal(SIGPIPE, SIG_IGN);
  const auto on_step = [&](const run::StepReport& step) {
    if (first_step == 0) {
      first_step = step.step;
      progress.restart();  // loading and tuning say nothing about the steps to come
    }
    if (mirror && !reader_gone) {
      const std::string line = dump_line(json_line(step)) + "\n";
      reader_gone =
          std::fwrite(line.data(), 1, line.size(), stdout) != line.size() || std::fflush(stdout) != 0;
    }
    progress.update(text_line(step, steps),
                    static_cast<double>(step.step - first_step) /
                        static_cast<double>(std::max<std::int64_t>(1, steps - first_step)));
  };
  run::TrainingOutcome outcome;
  try {
    outcome = run::run_training(run::engine_command(job, path, job.split.devices), interrupt, on_step,
                                [&](const std::string& text, std::optional<double> fraction) {
                                  // A remark has no share of the work, is said once, and must not be lost
                                  // between two updates.
                                  fraction ? progress.update(text, fraction) : progress.note(text);
                                });
  } catch (const Error& e) {
    // Only a start that came to nothing: after the first step there is something to go on from.
    if (first_step == 0 && exit_code(e.kind()) == exit_code(ErrorKind::Usage)) folder.discard();
    throw;
  }
  progress.finish();
  if (reader_gone) {
    std::clearerr(stdout);
  } else if (mirror || arguments.training.json) {
    Json summary = outcome.summary.is_object() ? outcome.summary : Json::object();
    summary["run_folder"] = path.string();
    fmt::print("{}\n", dump_line(summary));
  } else {
    fmt::print("{}: {}\n{}{}Run folder: {}\n", chosen.split.is_token_cut() ? "Token cut" : "Split",
               run::to_string(chosen.split), describe_summary(outcome.summary),
               chosen.decision ? describe_saving(*chosen.decision, steps) : "", path.string());
  }
  return outcome.interrupted ? exit_code(ErrorKind::Interrupted) : 0;
}

}  // namespace

void add_train_verb(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<TrainArguments>();
  add_training_options(app, arguments->training);
  app.add_option("--devices", arguments->training.devices)->check(CLI::Range(1, 1024));
  app.add_option("--save-every", arguments->training.options.save_every);
  app.add_option("--keep", arguments->training.options.keep);
  app.add_option("--trace", arguments->trace);
  app.add_flag("--no-cache", arguments->training.no_cache);
  app.add_flag("--write-job", arguments->write_job);
  app.add_option("--progress", arguments->progress);
  app.callback([&app, &exit_code, arguments] {
    finish(app, arguments->training);
    if (arguments->training.split.empty()) arguments->training.split = "auto";
    if (arguments->progress != "text" && arguments->progress != "json") {
      throw Error(ErrorKind::Usage, "--progress", fmt::format("'{}' is not known", arguments->progress),
                  "Choose one of text, json");
    }
    exit_code = train(*arguments);
  });
}

}  // namespace batchwright::cli
