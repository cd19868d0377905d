#include "check/log_line.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>

namespace batchwright::check {
namespace {

bool digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }

// Words that name a field when a number follows without ':' or '='. Longer ones first.
constexpr std::array<std::string_view, 26> kBareKeys = {
    "global step", "training loss", "train loss",    "validation loss", "val loss",
    "eval loss",   "learning rate", "gradient norm", "grad norm",       "lm loss",
    "global_step", "train_loss",    "training_loss", "val_loss",        "eval_loss",
    "grad_norm",   "learning_rate", "iteration",     "epoch",           "gnorm",
    "step",        "iter",          "loss",          "update",          "lr",
    "ppl"};

// The number at `at`, as text, and where it ends.
std::size_t number_end(std::string_view line, std::size_t at) {
  std::size_t i = at;
  if (i < line.size() && (line[i] == '-' || line[i] == '+')) ++i;
  const std::size_t digits = i;
  while (i < line.size()) {
    const char c = line[i];
    const bool exponent = (c == 'e' || c == 'E') && i > digits && i + 1 < line.size() &&
                          (digit(line[i + 1]) || line[i + 1] == '-' || line[i + 1] == '+');
    const bool sign = (c == '-' || c == '+') && i > digits && (line[i - 1] == 'e' || line[i - 1] == 'E');
    if (!digit(c) && c != '.' && !exponent && !sign) break;
    ++i;
  }
  return i > digits ? i : at;
}

std::string normal_field(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == ' ' || c == '-' || c == '_') {
      if (!result.empty() && result.back() != '_') result += '_';
    } else {
      result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  while (!result.empty() && result.back() == '_') result.pop_back();
  return result;
}

class LineParser {
 public:
  explicit LineParser(std::string_view line)
      : line_(line.substr(0, std::min<std::size_t>(line.size(), 20'000))) {}

  std::vector<LinePair> run() {
    std::size_t i = 0;
    while (i < line_.size() && pairs_.size() < 400) {
      if (letter(line_[i]) &&
          (i == 0 || !(letter(line_[i - 1]) || digit(line_[i - 1]) || line_[i - 1] == '_'))) {
        i = word(i);
      } else {
        ++i;
      }
    }
    return std::move(pairs_);
  }

 private:
  // A key runs over words and single spaces up to ':' or '='; otherwise one of the bare keys may stand here.
  std::size_t word(std::size_t start) {
    std::size_t end = start;
    while (end < line_.size() && (letter(line_[end]) || digit(line_[end]) || line_[end] == '_' ||
                                  line_[end] == '/' || line_[end] == '-' || line_[end] == '.' ||
                                  (line_[end] == ' ' && end + 1 < line_.size() && letter(line_[end + 1]))))
      ++end;
    std::size_t after = end;
    while (after < line_.size() && (line_[after] == '"' || line_[after] == '\'' || line_[after] == ' ' ||
                                    line_[after] == '\t' || line_[after] == '*' || line_[after] == ')'))
      ++after;
    if (after < line_.size() && (line_[after] == ':' || line_[after] == '=') &&
        line_.substr(after, 2) != "==")
      return separated(start, end, after + 1);
    return bare(start, end);
  }

  std::size_t separated(std::size_t start, std::size_t end, std::size_t value) {
    while (value < line_.size() &&
           (line_[value] == ' ' || line_[value] == '\t' || line_[value] == '"' || line_[value] == '\''))
      ++value;
    std::size_t stop = number_end(line_, value);
    if (stop == value) {
      while (stop < line_.size() && (letter(line_[stop]) || digit(line_[stop]) || line_[stop] == '_' ||
                                     line_[stop] == '-' || line_[stop] == '.' || line_[stop] == '/'))
        ++stop;
    } else {
      while (stop + 1 < line_.size() && line_[stop] == ',' && digit(line_[stop + 1]) &&
             stop + 4 <= line_.size() && digit(line_[stop + 2]) && digit(line_[stop + 3]) &&
             (stop + 4 == line_.size() || !digit(line_[stop + 4])))
        stop += 4;  // 24,000
    }
    // "Epoch 1 Step 50 Loss": the key is the last known words of the run, and numbers before it are pairs of
    // their own.
    std::string_view key = line_.substr(start, end - start);
    const std::size_t digit_at = key.find_first_of("0123456789");
    if (digit_at != std::string_view::npos && key.find(' ', digit_at) != std::string_view::npos) {
      bare(start, end);
      const std::size_t space = key.find(' ', digit_at);
      key = key.substr(key.find_first_not_of(' ', space));
    }
    pairs_.push_back({normal_field(key), std::string(line_.substr(value, stop - value))});
    return std::max(stop, value) + (stop == value && value < line_.size() ? 0 : 0);
  }

  std::size_t bare(std::size_t start, std::size_t end) {
    for (std::size_t at = start; at < end;) {
      std::size_t next = at;
      for (const std::string_view key : kBareKeys) {
        if (!matches(at, key)) continue;
        std::size_t value = at + key.size();
        while (value < line_.size() &&
               (line_[value] == ' ' || line_[value] == '[' || line_[value] == '(' || line_[value] == '#'))
          ++value;
        const std::size_t stop = number_end(line_, value);
        if (stop == value || value == at + key.size()) break;
        pairs_.push_back({normal_field(key), std::string(line_.substr(value, stop - value))});
        if (stop >= end) return stop;
        next = stop;
        break;
      }
      if (next == at) {  // to the next word
        while (next < end && line_[next] != ' ') ++next;
        while (next < end && line_[next] == ' ') ++next;
      }
      at = next;
    }
    return end;
  }

  bool matches(std::size_t at, std::string_view key) const {
    if (at + key.size() > line_.size()) return false;
    for (std::size_t i = 0; i < key.size(); ++i) {
      if (std::tolower(static_cast<unsigned char>(line_[at + i])) != key[i]) return false;
    }
    return at + key.size() == line_.size() || !letter(line_[at + key.size()]);
  }

  std::string_view line_;
  std::vector<LinePair> pairs_;
};

double to_number(const std::string& text) {
  const auto number = parse_number(text);
  return number ? *number : kUnknown;
}

}  // namespace

// Header words of well-known trainers and settings that people print before a run.
std::optional<Quantity> declared_quantity(const std::string& key) {
  static const std::map<std::string, Quantity> kHeaders = {
      {"num_examples", Quantity::Examples},
      {"num_epochs", Quantity::Epochs},
      {"num_train_epochs", Quantity::Epochs},
      {"instantaneous_batch_size_per_device", Quantity::MicroBatch},
      {"per_device_train_batch_size", Quantity::MicroBatch},
      {"train_batch_size", Quantity::MicroBatch},
      {"gradient_accumulation_steps", Quantity::Accumulation},
      {"total_train_batch_size_(w._parallel,_distributed_&_accumulation)", Quantity::GlobalBatch},
      {"total_train_batch_size", Quantity::GlobalBatch},
      {"total_optimization_steps", Quantity::MaxSteps},
      {"max_steps", Quantity::MaxSteps},
      {"global_batch_size", Quantity::GlobalBatch},
      {"effective_batch_size", Quantity::GlobalBatch},
      {"num_processes", Quantity::Processes},
      {"world_size", Quantity::Processes}};
  if (const auto found = kHeaders.find(key); found != kHeaders.end()) return found->second;
  const std::optional<Quantity> general = quantity_of(Tool::Generic, key);
  if (!general || *general == Quantity::LearningRate || *general == Quantity::LossName) return std::nullopt;
  return general;
}

std::vector<std::string> split_cells(std::string_view row, char separator) {
  std::vector<std::string> result;
  std::size_t start = 0;
  while (start <= row.size() && result.size() < 200) {
    const std::size_t end = std::min(row.find(separator, start), row.size());
    std::string_view cell = row.substr(start, end - start);
    while (!cell.empty() && (cell.front() == ' ' || cell.front() == '"' || cell.front() == '\t' ||
                             cell.front() == '*' || cell.front() == '`'))
      cell.remove_prefix(1);
    while (!cell.empty() && (cell.back() == ' ' || cell.back() == '"' || cell.back() == '\t' ||
                             cell.back() == '*' || cell.back() == '`'))
      cell.remove_suffix(1);
    result.emplace_back(cell);
    start = end + 1;
  }
  return result;
}

std::vector<LinePair> pairs_of_line(std::string_view line) { return LineParser(line).run(); }

bool set_field(LogRecord& record, const std::string& key, const std::string& value) {
  // Prefixes that trackers put before a name: "train/loss", "metrics.loss".
  std::string name = key;
  const bool evaluation = name.starts_with("eval") || name.starts_with("val") || name.starts_with("test") ||
                          name.starts_with("dev") || name.find("/val") != std::string::npos;
  if (const std::size_t slash = name.find_last_of("/.");
      slash != std::string::npos && slash + 1 < name.size())
    name = name.substr(slash + 1);
  for (const std::string_view prefix : {"eval_", "val_", "validation_", "valid_", "test_", "dev_"}) {
    if (evaluation && name.starts_with(prefix)) name = name.substr(prefix.size());
  }
  double* field = nullptr;
  if (evaluation) {
    if (name == "loss") field = &record.eval_loss;
  } else if (name == "loss" || name == "train_loss" || name == "training_loss" || name == "lm_loss" ||
             name == "ce_loss" || name == "loss_train" || name == "total_loss" || name == "batch_loss" ||
             name == "avg_loss" || name == "average_loss") {
    field = &record.loss;
  } else if (name == "grad_norm" || name == "gradient_norm" || name == "gnorm" ||
             name == "global_grad_norm" || name == "total_norm" || name == "gradnorm" || name == "grad_l2") {
    field = &record.grad_norm;
  } else if (name == "learning_rate" || name == "lr" || name == "current_lr") {
    field = &record.learning_rate;
  } else if (name == "step" || name == "global_step" || name == "iteration" || name == "iter" ||
             name == "update" || name == "steps" || name == "optimizer_step" || name == "current_steps" ||
             name == "opt_step" || name == "it") {
    field = &record.step;
  } else if (name == "epoch") {
    field = &record.epoch;
  }
  if (field == nullptr) return false;
  const double number = to_number(value);
  if (std::isnan(number)) return false;
  if (std::isnan(*field)) *field = number;
  return true;
}

std::optional<std::pair<double, double>> progress_of_line(std::string_view line) {
  line = line.substr(0, std::min<std::size_t>(line.size(), 20'000));
  std::optional<std::pair<double, double>> found;
  for (std::size_t slash = line.find('/'); slash != std::string_view::npos;
       slash = line.find('/', slash + 1)) {
    std::size_t start = slash, end = slash + 1;
    while (start > 0 && digit(line[start - 1])) --start;
    while (end < line.size() && digit(line[end])) ++end;
    if (start == slash || end == slash + 1 || slash - start > 9 || end - slash > 10) continue;
    if (line.substr(end, 2) != " [") continue;
    found = {std::strtod(std::string(line.substr(start, slash - start)).c_str(), nullptr),
             std::strtod(std::string(line.substr(slash + 1, end - slash - 1)).c_str(), nullptr)};
  }
  return found;
}

}  // namespace batchwright::check
