#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "base/error.h"
#include "check/config_arithmetic.h"
#include "check/config_read.h"

namespace batchwright::check {
namespace {

using Q = Quantity;

bool word_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

struct Argument {
  std::string name, value;
  int line = 0;
};

// Reads what a configuration in Python says without running it: constants, constructor calls and dict
// literals. It scans characters (strings and comments aside), so that a file that no Python parser would take
// is read too.
class PythonReader {
 public:
  PythonReader(std::string_view text, std::size_t file, int first_line)
      : text_(text), file_(file), first_line_(first_line) {}

  std::vector<Section> run() {
    find_line_starts();
    std::size_t i = 0;
    while (i < text_.size()) {
      const char c = text_[i];
      if (c == '#') {
        i = std::min(text_.find('\n', i), text_.size());
      } else if (c == '"' || c == '\'') {
        i = end_of_string(i);
      } else if (word_char(c) && (i == 0 || (!word_char(text_[i - 1]) && text_[i - 1] != '.'))) {
        i = name_at(i);
      } else {
        ++i;
      }
    }
    // Which loss goes with which arguments shows only when there is one of each.
    if (losses_.size() == 1) {
      for (Section& section : sections_) {
        if (section.tool == Tool::Transformers) section.settings.push_back(losses_[0]);
      }
    }
    Section constants = constants_section();
    if (!constants.settings.empty()) sections_.push_back(std::move(constants));
    return std::move(sections_);
  }

 private:
  void find_line_starts() {
    starts_.push_back(0);
    for (std::size_t i = 0; i < text_.size(); ++i) {
      if (text_[i] == '\n') starts_.push_back(i + 1);
    }
  }

  int line_of(std::size_t offset) const {
    const auto after = std::upper_bound(starts_.begin(), starts_.end(), offset);
    return first_line_ + static_cast<int>(after - starts_.begin()) - 1;
  }

  std::size_t end_of_string(std::size_t i) const {
    const char quote = text_[i];
    const bool triple = text_.substr(i, 3) == std::string(3, quote);
    if (triple) {
      const std::size_t end = text_.find(std::string(3, quote), i + 3);
      return end == std::string_view::npos ? text_.size() : end + 3;
    }
    for (++i; i < text_.size() && text_[i] != '\n'; ++i) {
      if (text_[i] == '\\')
        ++i;
      else if (text_[i] == quote)
        return i + 1;
    }
    return i;
  }

  // The offset of the bracket that closes the one at `open`, or npos.
  std::size_t closing(std::size_t open) const {
    int depth = 0;
    for (std::size_t i = open; i < text_.size() && i < open + 40'000 && ++scanned_ < 8'000'000;) {
      const char c = text_[i];
      if (c == '"' || c == '\'') {
        i = end_of_string(i);
        continue;
      }
      if (c == '#') {
        i = std::min(text_.find('\n', i), text_.size());
        continue;
      }
      if (c == '(' || c == '[' || c == '{') ++depth;
      if ((c == ')' || c == ']' || c == '}') && --depth == 0) return i;
      ++i;
    }
    return std::string_view::npos;
  }

  std::size_t name_at(std::size_t i) {
    std::size_t end = i;
    while (end < text_.size() && (word_char(text_[end]) || text_[end] == '.')) ++end;
    const std::string name(text_.substr(i, end - i));
    std::size_t next = end;
    while (next < text_.size() && (text_[next] == ' ' || text_[next] == '\t')) ++next;
    if (next >= text_.size()) return end;
    if (text_[next] == '(') return call(name, i, next);
    const bool assigns = text_[next] == '=' && text_.substr(next, 2) != "==";
    if (!assigns) return end;
    const std::size_t line = starts_[static_cast<std::size_t>(line_of(i) - first_line_)];
    if (text_.substr(line, i - line).find_first_not_of(" \t") == std::string_view::npos)
      return assignment(name, i, next + 1);
    return end;
  }

  std::size_t call(const std::string& name, std::size_t start, std::size_t open) {
    const std::string short_name =
        name.substr(name.find_last_of('.') == std::string::npos ? 0 : name.find_last_of('.') + 1);
    if (!std::isupper(static_cast<unsigned char>(short_name[0]))) return open + 1;  // no class
    const Tool* tool = tool_of_call(short_name);
    if (tool == nullptr) {
      if (short_name.ends_with("Loss") && short_name.size() > 4)
        losses_.push_back({.quantity = Q::LossName,
                           .key = "loss",
                           .written = short_name,
                           .line = line_of(start),
                           .file = file_});
      return open + 1;
    }
    const std::size_t close = closing(open);
    if (close == std::string_view::npos) return open + 1;
    Section section;
    section.tool = *tool;
    section.file = file_;
    section.line = line_of(start);
    section.marks.push_back("call:" + short_name);
    for (const Argument& argument : arguments(open + 1, close)) add_argument(section, argument);
    const bool lightning = short_name != "Trainer" || section.find(Q::Accumulation) != nullptr ||
                           section.find(Q::ProcessesPerNode) != nullptr || section.find(Q::Clip) != nullptr ||
                           section.find(Q::Epochs) != nullptr;
    if (lightning) sections_.push_back(std::move(section));
    return close;
  }

  static const Tool* tool_of_call(const std::string& name) {
    static const std::map<std::string, Tool> kCalls = {
        {"TrainingArguments", Tool::Transformers},
        {"Seq2SeqTrainingArguments", Tool::Transformers},
        {"SFTConfig", Tool::Transformers},
        {"DPOConfig", Tool::Transformers},
        {"GRPOConfig", Tool::Transformers},
        {"ORPOConfig", Tool::Transformers},
        {"KTOConfig", Tool::Transformers},
        {"RewardConfig", Tool::Transformers},
        {"CPOConfig", Tool::Transformers},
        {"SentenceTransformerTrainingArguments", Tool::Transformers},
        {"CrossEncoderTrainingArguments", Tool::Transformers},
        {"Accelerator", Tool::Accelerate},
        {"DeepSpeedPlugin", Tool::DeepSpeedPlugin},
        {"Trainer", Tool::Lightning},
        {"UnslothTrainingArguments", Tool::Transformers},
        {"GaudiTrainingArguments", Tool::Transformers}};
    const auto found = kCalls.find(name);
    return found == kCalls.end() ? nullptr : &found->second;
  }

  std::vector<Argument> arguments(std::size_t from, std::size_t to) const {
    std::vector<Argument> result;
    int depth = 0;
    std::size_t start = from;
    for (std::size_t i = from; i <= to;) {
      const char c = i < to ? text_[i] : ',';
      if (i < to && (c == '"' || c == '\'')) {
        i = std::min(end_of_string(i), to);
        continue;
      }
      if (i < to && c == '#') {
        i = std::min(text_.find('\n', i), to);
        continue;
      }
      if (c == '(' || c == '[' || c == '{') ++depth;
      if (i < to && (c == ')' || c == ']' || c == '}')) --depth;
      if (c == ',' && depth == 0) {
        split_argument(start, i, result);
        start = i + 1;
      }
      ++i;
    }
    return result;
  }

  void split_argument(std::size_t start, std::size_t end, std::vector<Argument>& result) const {
    while (start < end) {  // leading space and comment lines
      if (std::isspace(static_cast<unsigned char>(text_[start])))
        ++start;
      else if (text_[start] == '#')
        start = std::min(text_.find('\n', start), end);
      else
        break;
    }
    std::size_t name_end = start;
    while (name_end < end && word_char(text_[name_end])) ++name_end;
    std::size_t equal = name_end;
    while (equal < end && std::isspace(static_cast<unsigned char>(text_[equal]))) ++equal;
    if (name_end == start || equal >= end || text_[equal] != '=') return;
    Argument argument{.name = std::string(text_.substr(start, name_end - start)),
                      .value = trimmed(equal + 1, end),
                      .line = line_of(start)};
    result.push_back(std::move(argument));
  }

  // The value's text without a trailing comment.
  std::string trimmed(std::size_t start, std::size_t end) const {
    std::size_t stop = start;
    for (std::size_t i = start; i < end;) {
      if (text_[i] == '"' || text_[i] == '\'') {
        i = std::min(end_of_string(i), end);
        stop = i;
        continue;
      }
      if (text_[i] == '#') {
        i = std::min(text_.find('\n', i), end);
        continue;
      }
      if (!std::isspace(static_cast<unsigned char>(text_[i]))) stop = i + 1;
      ++i;
    }
    while (start < stop && std::isspace(static_cast<unsigned char>(text_[start]))) ++start;
    return std::string(text_.substr(start, stop - start));
  }

  void add_argument(Section& section, const Argument& argument) {
    if (argument.name == "deepspeed" && !argument.value.empty() && argument.value != "None")
      section.marks.push_back("deepspeed_flag");
    if (argument.name == "packing" && argument.value == "True") section.marks.push_back("packing");
    if (argument.name == "automatic_optimization" && argument.value == "False")
      section.marks.push_back("manual_optimization");
    const std::optional<Quantity> quantity = quantity_of(section.tool, argument.name);
    std::string value = argument.value;
    const bool quoted =
        value.size() >= 2 && (value[0] == '"' || value[0] == '\'') && value.back() == value[0];
    if (quoted) value = value.substr(1, value.size() - 2);
    if (value.ends_with(".json") || value.ends_with(".yaml") || value.ends_with(".yml"))
      section.references.push_back(value);
    if (argument.name == "strategy") section.marks.push_back("strategy:" + normal_key(value));
    if (!quantity) return;
    Setting setting{.quantity = *quantity, .key = argument.name, .written = value};
    setting.quoted = quoted;
    setting.is_auto = value == "auto";
    setting.line = argument.line;
    setting.file = file_;
    if (quoted) {
      setting.number = parse_number(value);
    } else if (const auto computed = evaluate(value)) {
      setting.number = computed->value;
      setting.inexact = computed->inexact;
    } else if (value.starts_with("[")) {
      setting.number = 1 + std::count(value.begin(), value.end(), ',');
    }
    section.settings.push_back(std::move(setting));
  }

  // Whether it begins with a number, a known name or something that may be computed: few assignments do.
  bool may_be_number(std::string_view expression) const {
    if (expression.empty() ||
        !(std::isalpha(static_cast<unsigned char>(expression[0])) || expression[0] == '_'))
      return !expression.empty() &&
             std::string_view("0123456789.+-(").find(expression[0]) != std::string_view::npos;
    std::size_t end = 0;
    while (end < expression.size() && (word_char(expression[end]) || expression[end] == '.')) ++end;
    return (end < expression.size() && expression[end] == '(') ||
           constants_.find(expression.substr(0, end)) != constants_.end();
  }

  std::optional<Computed> evaluate(const std::string& expression) const {
    if (!may_be_number(expression)) return std::nullopt;
    const Lookup lookup = [&](std::string_view name) -> std::optional<Computed> {
      const auto found = constants_.find(name);
      return found == constants_.end() ? std::nullopt : std::optional(found->second);
    };
    return evaluate_arithmetic(expression, false, lookup);
  }

  std::size_t assignment(const std::string& name, std::size_t start, std::size_t after) {
    std::size_t value_start = after;
    while (value_start < text_.size() && (text_[value_start] == ' ' || text_[value_start] == '\t'))
      ++value_start;
    if (value_start < text_.size() && text_[value_start] == '{') return dict(name, value_start);
    const std::size_t line_end = std::min(text_.find('\n', value_start), text_.size());
    const std::string value = trimmed(value_start, line_end);
    if (const auto computed = evaluate(value)) {
      constants_[name] = *computed;
      lines_[name] = line_of(start);
      return line_end;
    }
    constants_.erase(name);
    return value_start;
  }

  // ds_config = {"train_batch_size": 32, ...}: Python's literals are flow YAML once their trailing words are
  // names.
  std::size_t dict(const std::string& name, std::size_t open) {
    const std::size_t close = closing(open);
    if (close == std::string_view::npos) return open + 1;
    const std::string_view literal = text_.substr(open, close - open + 1);
    if (literal.find("batch") == std::string_view::npos && literal.find("accum") == std::string_view::npos &&
        literal.find("steps") == std::string_view::npos)
      return open + 1;
    try {
      const ConfigNode tree = parse_config_tree(substituted(literal), name);
      for (Section& section : read_tree_sections(tree, file_, name)) {
        for (Setting& setting : section.settings) setting.line += line_of(open) - 1;
        section.line += line_of(open) - 1;
        sections_.push_back(std::move(section));
      }
    } catch (const Error&) {
      return open + 1;  // expressions that are no literals: nothing is known of them
    }
    return close + 1;
  }

  // Values that are names of constants are replaced by what they are.
  std::string substituted(std::string_view literal) const {
    std::string result;
    for (std::size_t i = 0; i < literal.size();) {
      if (literal[i] == '"' || literal[i] == '\'') {
        const std::size_t end = std::min(literal.find(literal[i], i + 1), literal.size() - 1);
        result += literal.substr(i, end - i + 1);
        i = end + 1;
      } else if (word_char(literal[i]) && !std::isdigit(static_cast<unsigned char>(literal[i]))) {
        std::size_t end = i;
        while (end < literal.size() && word_char(literal[end])) ++end;
        const std::string name(literal.substr(i, end - i));
        const auto found = constants_.find(name);
        result +=
            found == constants_.end() ? name : std::to_string(static_cast<long long>(found->second.value));
        i = end;
      } else {
        result += literal[i++];
      }
    }
    return result;
  }

  Section constants_section() const {
    Section section;
    section.tool = Tool::Generic;
    section.file = file_;
    section.marks.push_back("variables");
    for (const auto& [name, computed] : constants_) {
      const std::optional<Quantity> quantity = quantity_of(Tool::Generic, name);
      if (!quantity) continue;
      Setting setting{.quantity = *quantity,
                      .key = name,
                      .written = std::to_string(static_cast<long long>(computed.value)),
                      .number = computed.value};
      setting.line = lines_.at(name);
      setting.file = file_;
      setting.inexact = computed.inexact;
      section.settings.push_back(std::move(setting));
    }
    return section;
  }

  std::string_view text_;
  std::size_t file_;
  int first_line_;
  std::vector<std::size_t> starts_;
  mutable std::size_t scanned_ = 0;  // bounds the work of looking for closing brackets that do not exist
  std::map<std::string, Computed, std::less<>> constants_;
  std::map<std::string, int> lines_;
  std::vector<Setting> losses_;
  std::vector<Section> sections_;
};

}  // namespace

std::vector<Section> read_python_sections(std::string_view text, std::size_t file, int first_line) {
  return PythonReader(text, file, first_line).run();
}

}  // namespace batchwright::check
