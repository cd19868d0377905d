#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "base/error.h"
#include "base/units.h"
#include "cli/verbs.h"
#include "plan/document.h"
#include "plan/export.h"
#include "plan/planner.h"

namespace batchwright::cli {
namespace {

struct PlanOptions {
  std::string model, lora_targets, lora_extra_trained, kbit_preparation, lengths, memory_bytes,
      base_learning_rate, headroom, batch;
  std::vector<std::pair<std::string, std::string>> words;  // keys whose value is passed on as written
  std::vector<std::pair<std::string, std::string>> numbers;
  std::string format;  // of --format; empty: none
  bool json = false, explain = false;
};

Json number_of(const std::string& key, const std::string& text) {
  try {
    const Json value = parse_json(text, key);
    if (value.is_number()) return value;
  } catch (const Error&) {
  }
  throw Error(ErrorKind::Usage, "--" + key, fmt::format("'{}' is not a number", text));
}

std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == ',') {
      parts.emplace_back();
    } else if (c != ' ') {
      parts.back() += c;
    }
  }
  return parts;
}

std::string with_underscores(std::string key) {
  for (char& c : key) c = c == '-' ? '_' : c;
  return key;
}

// "8%" or "0.08".
double fraction_of(const std::string& text) {
  const bool percent = text.ends_with("%");
  const double value = number_of("headroom", percent ? text.substr(0, text.size() - 1) : text).get<double>();
  return percent ? value / 100 : value;
}

const std::string& value_of(const std::vector<std::pair<std::string, std::string>>& options,
                            const std::string& key) {
  return std::find_if(options.begin(), options.end(), [&](const auto& o) { return o.first == key; })->second;
}

// Whoever names targets means adapters; a plan of full fine-tuning would be the answer to another question.
void refuse_lora_options_without_lora(const PlanOptions& options) {
  const std::string& method = value_of(options.words, "method");
  if (!method.empty() && method != "full") return;
  const std::pair<const char*, const std::string&> given[] = {
      {"--lora-rank", value_of(options.numbers, "lora-rank")},
      {"--lora-targets", options.lora_targets},
      {"--lora-extra-trained", options.lora_extra_trained}};
  for (const auto& [option, value] : given) {
    if (!value.empty())
      throw Error(ErrorKind::Usage, option, "is for LoRA, and the method is full",
                  "Add --lora RANK, or --method qlora");
  }
}

// The command line becomes a request as --batch reads it, so that one reader checks both.
Json request_of(const PlanOptions& options) {
  refuse_lora_options_without_lora(options);
  Json request = Json::object();
  request["model"] = options.model;
  for (const auto& [key, value] : options.words) {
    if (!value.empty()) request[with_underscores(key)] = value;
  }
  for (const auto& [key, value] : options.numbers) {
    if (!value.empty()) request[with_underscores(key)] = number_of(key, value);
  }
  if (options.lora_targets == "all-linear")
    request["lora_targets"] = options.lora_targets;
  else if (!options.lora_targets.empty())
    request["lora_targets"] = split_list(options.lora_targets);
  if (!options.lora_extra_trained.empty())
    request["lora_extra_trained"] = split_list(options.lora_extra_trained);
  if (!options.kbit_preparation.empty()) {
    const bool yes = options.kbit_preparation == "true";
    if (!yes && options.kbit_preparation != "false")
      throw Error(ErrorKind::Usage, "--kbit-preparation",
                  fmt::format("has no value \"{}\"", options.kbit_preparation), "Use true or false");
    request["kbit_preparation"] = yes;
  }
  if (!options.lengths.empty()) request["lengths"] = options.lengths;
  if (!options.memory_bytes.empty())
    request["memory_bytes"] = parse_bytes(options.memory_bytes, "--memory-bytes");
  if (!options.headroom.empty()) request["headroom"] = fraction_of(options.headroom);
  return request;
}

// A refused request names its keys; on the command line they are options.
Error as_option_error(const Error& error) {
  const auto option = [](std::string_view key) {
    std::string name = "--" + std::string(key);
    std::replace(name.begin(), name.end(), '_', '-');
    return key == "model" ? std::string("MODEL") : name;
  };
  std::string subject = error.subject(), message = error.message(), hint = error.hint();
  for (const std::string_view key : plan::request_keys()) {
    if (subject == key) subject = option(key);
    const std::string field = fmt::format("field \"{}\" ", key), quoted = fmt::format("\"{}\"", key);
    if (message.starts_with(field)) {
      subject = option(key);
      message.erase(0, field.size());
    }
    for (std::string* text : {&message, &hint}) {
      for (std::size_t at; (at = text->find(quoted)) != std::string::npos;)
        text->replace(at, quoted.size(), option(key));
    }
  }
  return Error(error.kind(), subject, message, hint);
}

plan::Plan plan_from_options(const PlanOptions& options) {
  try {
    plan::Planner planner;
    return planner.plan(plan::parse_request(request_of(options), "plan"));
  } catch (const Error& error) {
    throw as_option_error(error);
  }
}

int answer_batch(const std::string& path) {
  std::ifstream file;
  if (path != "-") {
    if (std::filesystem::is_directory(path)) {
      throw Error(ErrorKind::NotFound, path, "is a folder", "Give a file with one request a line");
    }
    file.open(path);
    if (!file) throw Error(ErrorKind::NotFound, path, "cannot be read");
  }
  std::istream& in = path == "-" ? std::cin : file;
  plan::Planner planner;
  bool failed = false;
  std::string line;
  for (std::size_t number = 1; std::getline(in, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const std::string answer = plan::answer_line(planner, line, number, failed) + "\n";
    std::fwrite(answer.data(), 1, answer.size(), stdout);
  }
  return failed ? 1 : 0;
}

int run_plan(const PlanOptions& options) {
  if (!options.batch.empty()) return answer_batch(options.batch);
  if (options.model.empty())
    throw Error(ErrorKind::Usage, "MODEL", "is missing", "`batchwright plan --help` shows an example");
  const plan::Plan plan = plan_from_options(options);
  if (!options.format.empty()) {
    const std::size_t index = plan.recommended.value_or(plan.splits.size() - 1);
    const std::string settings = plan::export_settings(plan, index, options.format);
    fmt::print(stderr, "{}\n", plan.reason);
    fmt::print("{}", settings);
  } else if (options.json) {
    fmt::print("{}\n", plan::plan_line(plan));
  } else {
    fmt::print("{}", plan::plan_text(plan));
    if (options.explain) {
      fmt::print("\n{}", plan::explain_text(plan, plan.recommended.value_or(plan.splits.size() - 1)));
    }
  }
  return plan.nothing_fits() ? 1 : 0;
}

}  // namespace

void add_plan_verb(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<PlanOptions>();
  // The vectors must not grow once options point into them.
  options->words.reserve(32);
  options->numbers.reserve(32);
  app.add_option("MODEL", options->model);
  for (const char* key :
       {"task", "method", "weights", "compute", "optimizer", "checkpointing", "attention", "loss", "sharding",
        "offload", "framework", "adapter-weights", "gpu", "counter", "lr-rule"}) {
    options->words.emplace_back(key, "");
    app.add_option(fmt::format("--{}", key), options->words.back().second);
  }
  for (const char* key : {"lora-rank", "seq-len", "effective-batch", "micro-batch", "devices",
                          "base-effective-batch", "base-learning-rate", "warmup-steps"}) {
    options->numbers.emplace_back(key, "");
    app.add_option(fmt::format("--{}", key), options->numbers.back().second);
  }
  app.add_option_function<std::string>("--lora", [options](const std::string& rank) {
    for (auto& [key, value] : options->words) {
      if (key == "method" && value == "full") {
        throw Error(ErrorKind::Usage, "--lora", "contradicts --method full");
      }
      if (key == "method" && value.empty()) value = "lora";
    }
    for (auto& [key, value] : options->numbers) {
      if (key == "lora-rank") value = rank;
    }
  });
  app.add_option("--lora-targets", options->lora_targets);
  app.add_option("--lora-extra-trained", options->lora_extra_trained);
  app.add_option("--kbit-preparation", options->kbit_preparation);
  app.add_option("--lengths", options->lengths);
  app.add_option("--memory-bytes", options->memory_bytes);
  app.add_option("--headroom", options->headroom);
  app.add_option("--batch", options->batch);
  app.add_option("--format", options->format);
  app.add_flag("--explain", options->explain);
  app.add_flag("--json", options->json);
  app.callback([options, &exit_code] { exit_code = run_plan(*options); });
}

}  // namespace batchwright::cli
