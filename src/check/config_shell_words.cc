#include "check/config_shell_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>

#include "check/config_arithmetic.h"
#include "check/config_tree.h"

namespace batchwright::check {
namespace {

constexpr std::size_t kMaxWord = 20'000;  // an expansion may not grow without end
constexpr std::size_t kMaxWords = 200'000;

bool is_name(std::string_view text) {
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text[0]))) return false;
  return std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isalnum(c) || c == '_'; });
}

class ShellReader {
 public:
  ShellReader(std::string_view text, int first_line) : text_(text), line_(first_line) {}

  ShellScript run() {
    while (at_ < text_.size() && count_ < kMaxWords) step();
    end_command();
    return std::move(script_);
  }

 private:
  void step() {
    const char c = text_[at_];
    if (c == '\\' && peek(1) == '\n') return newline_inside(2);
    if (c == '\\' && peek(1) == '\r' && peek(2) == '\n') return newline_inside(3);
    if (c == '\n') {
      end_word();
      if (in_array_) {
        ++line_, ++at_;
        return;
      }
      end_command();
      ++line_, ++at_;
      return;
    }
    if (c == '#' && !in_word_) return comment();
    if (c == ' ' || c == '\t' || c == '\r') {
      end_word();
      ++at_;
      return;
    }
    if (in_array_ && c == ')') {
      end_word();
      close_array();
      ++at_;
      return;
    }
    if (c == ';' || c == '&' || c == '|' || c == '(' || c == ')' || c == '<' || c == '>')
      return operator_sign(c);
    word_part();
  }

  char peek(std::size_t ahead) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  void newline_inside(std::size_t length) {
    end_word();
    at_ += length;
    ++line_;
  }

  void operator_sign(char c) {
    // "2>&1" and "> log" are redirections: the words of the command go on behind them.
    if (c == '<' || c == '>') {
      if (in_word_ && word_.text.size() == 1 && std::isdigit(static_cast<unsigned char>(word_.text[0])))
        in_word_ = false, word_ = {};
      end_word();
      while (at_ < text_.size() && (text_[at_] == '<' || text_[at_] == '>' || text_[at_] == '&')) ++at_;
      skip_next_word_ = true;
      return;
    }
    if (c == '(' && in_word_ && !word_.text.empty() && word_.text.back() == '=') {
      array_name_ = word_.text.substr(0, word_.text.size() - 1);
      in_word_ = false, word_ = {};
      in_array_ = true;
      ++at_;
      return;
    }
    end_word();
    end_command();
    ++at_;
  }

  void close_array() {
    in_array_ = false;
    script_.variables[array_name_] = array_;
    array_ = {};
  }

  void comment() {
    std::size_t end = text_.find('\n', at_);
    if (end == std::string_view::npos) end = text_.size();
    const std::string_view row = text_.substr(at_, end - at_);
    if (row.starts_with("#SBATCH") || row.starts_with("#PBS") || row.starts_with("#$")) directive(row);
    at_ = end;
  }

  // "#SBATCH --nodes=2", "#SBATCH -N 2", "#SBATCH --gres=gpu:a100:8".
  void directive(std::string_view row) {
    std::size_t at = row.find('-');
    if (at == std::string_view::npos) return;
    const bool is_long = row.substr(at, 2) == "--";
    at += is_long ? 2 : 1;
    const std::size_t end = std::min(is_long ? row.find_first_of("= \t", at) : at + 1, row.size());
    std::string key = normal_key(row.substr(at, end - at));
    if (!is_long) key = row[at] == 'N' ? "nodes" : row[at] == 'n' ? "ntasks" : row[at] == 'G' ? "gpus" : "";
    const std::size_t start = std::min(row.find_first_not_of("= \t", end), row.size());
    std::string value(row.substr(start));
    value = value.substr(0, value.find_first_of(" \t#\r"));
    if (key == "gres" || key.starts_with("gpus")) value = value.substr(value.find_last_of(":=") + 1);
    if (key == "gres") key = "gpus_per_node";
    const ShellWord word{.text = value, .inexact = "", .line = line_, .unknown = false};
    script_.directives[key] = word;
    static const std::multimap<std::string, std::string> kVariables = {
        {"nodes", "SLURM_NNODES"},
        {"nodes", "SLURM_JOB_NUM_NODES"},
        {"ntasks", "SLURM_NTASKS"},
        {"ntasks", "SLURM_NPROCS"},
        {"gpus_per_node", "SLURM_GPUS_ON_NODE"},
        {"gpus_per_node", "SLURM_GPUS_PER_NODE"},
        {"ntasks_per_node", "SLURM_NTASKS_PER_NODE"}};
    for (auto [it, last] = kVariables.equal_range(key); it != last; ++it)
      script_.variables[it->second] = word;
  }

  void word_part() {
    if (!in_word_) in_word_ = true, word_ = {}, word_.line = line_;
    const char c = text_[at_];
    if (c == '\'') {
      const std::size_t end = std::min(text_.find('\'', at_ + 1), text_.size());
      append(text_.substr(at_ + 1, end - at_ - 1));
      line_ += static_cast<int>(
          std::count(text_.begin() + static_cast<std::ptrdiff_t>(at_),
                     text_.begin() + static_cast<std::ptrdiff_t>(std::min(end, text_.size())), '\n'));
      at_ = end + 1;
    } else if (c == '"') {
      double_quoted();
    } else if (c == '$') {
      expansion(false);
    } else if (c == '\\' && at_ + 1 < text_.size()) {
      append(text_.substr(at_ + 1, 1));
      at_ += 2;
    } else {
      append(text_.substr(at_, 1));
      ++at_;
    }
  }

  void double_quoted() {
    ++at_;
    while (at_ < text_.size() && text_[at_] != '"') {
      if (text_[at_] == '$') {
        expansion(true);
        continue;
      }
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) {
        if (text_[at_ + 1] == '\n') {
          append(" ");
          ++line_;
        } else {
          append(text_.substr(at_ + 1, 1));
        }
        at_ += 2;
        continue;
      }
      if (text_[at_] == '\n') ++line_;
      append(text_.substr(at_, 1));
      ++at_;
    }
    ++at_;
  }

  void append(std::string_view part) {
    if (word_.text.size() + part.size() <= kMaxWord) word_.text += part;
  }

  // An expansion outside quotes splits into words when its value holds spaces (ARGS="--a 1 --b 2"; python
  // $ARGS).
  void expansion(bool quoted) {
    if (text_.substr(at_, 3) == "$((") return arithmetic();
    if (text_.substr(at_, 2) == "$(" || text_[at_] == '`') return command_substitution();
    std::size_t end = at_ + 1;
    std::string name, fallback;
    if (peek(1) == '{') {
      end = std::min(text_.find('}', at_), text_.size());
      std::string inside(text_.substr(at_ + 2, end > at_ + 2 ? end - at_ - 2 : 0));
      ++end;
      if (const auto colon = inside.find_first_of(":-="); colon != std::string::npos) {
        fallback = inside.substr(std::min(inside.find_first_not_of(":-=", colon), inside.size()));
        inside = inside.substr(0, colon);
      }
      name = inside.substr(0, inside.find('['));
    } else {
      while (end < text_.size() &&
             (std::isalnum(static_cast<unsigned char>(text_[end])) || text_[end] == '_'))
        ++end;
      name = std::string(text_.substr(at_ + 1, end - at_ - 1));
    }
    if (end == at_ + 1) {  // "$" alone, or "$@", "$1" of another kind
      append("$");
      at_ = end;
      return;
    }
    at_ = end;
    const auto found = script_.variables.find(name);
    if (found != script_.variables.end() && !found->second.unknown) {
      if (word_.inexact.empty()) word_.inexact = found->second.inexact;
      insert(found->second.text, quoted);
    } else if (!fallback.empty() && fallback[0] != '$') {
      insert(fallback, quoted);
    } else {
      word_.unknown = true;
      append("$" + name);
    }
  }

  void insert(std::string_view value, bool quoted) {
    if (quoted || value.find_first_of(" \n\t") == std::string_view::npos) return append(value);
    for (std::size_t i = 0; i < value.size();) {
      const std::size_t end = std::min(value.find_first_of(" \n\t", i), value.size());
      if (end > i) append(value.substr(i, end - i));
      if (end < value.size()) {
        const int line = word_.line;
        end_word();
        in_word_ = true, word_ = {}, word_.line = line;
      }
      i = end + 1;
    }
    if (word_.text.empty()) in_word_ = false;
  }

  void arithmetic() {
    int depth = 0;
    std::size_t end = at_ + 1;
    for (; end < text_.size(); ++end) {
      if (text_[end] == '(') ++depth;
      if (text_[end] == ')' && --depth == 0) break;
    }
    const std::string_view inside = end > at_ + 4 ? text_.substr(at_ + 3, end - at_ - 4) : "";
    line_ += static_cast<int>(std::count(inside.begin(), inside.end(), '\n'));
    at_ = std::min(end + 1, text_.size());
    const Lookup lookup = [&](std::string_view name) -> std::optional<Computed> {
      const auto found = script_.variables.find(std::string(name));
      if (found == script_.variables.end()) return std::nullopt;
      const auto number = parse_number(found->second.text);
      if (!number) return std::nullopt;
      return Computed{.value = *number, .constant = false, .inexact = found->second.inexact};
    };
    const std::optional<Computed> result = evaluate_arithmetic(inside, true, lookup);
    if (!result) {
      word_.unknown = true;
      append("$((?))");
      return;
    }
    append(fmt::format("{}", static_cast<long long>(result->value)));
    if (word_.inexact.empty()) word_.inexact = result->inexact;
  }

  void command_substitution() {
    int depth = 0;
    std::size_t end = at_ + 1;
    for (; end < text_.size(); ++end) {
      if (text_[end] == '(') ++depth;
      if (text_[end] == ')' && --depth == 0) break;
    }
    const std::string_view inside = text_.substr(at_ + 2, end > at_ + 2 ? end - at_ - 2 : 0);
    line_ += static_cast<int>(std::count(inside.begin(), inside.end(), '\n'));
    at_ = std::min(end + 1, text_.size());
    word_.unknown = true;
    append("$(?)");
  }

  void end_word() {
    if (!in_word_) return;
    in_word_ = false;
    ++count_;
    if (skip_next_word_) {
      skip_next_word_ = false;
    } else if (in_array_) {
      if (!array_.text.empty()) array_.text += ' ';
      array_.text += word_.text;
      array_.line = word_.line;
      if (array_.text.size() > kMaxWord) array_ = {};
    } else {
      command_.words.push_back(word_);
    }
    word_ = {};
  }

  // Assignments in front of the command's words belong to its environment; a command of nothing else sets
  // variables.
  void end_command() {
    skip_next_word_ = false;
    std::vector<ShellWord>& words = command_.words;
    static const std::set<std::string> kDeclarers = {"export", "declare", "local", "readonly", "set",
                                                     "env",    "nohup",   "exec",  "time",     "then",
                                                     "do",     "else",    "sudo",  "!"};
    std::size_t first = 0;
    bool declares = false;
    for (; first < words.size(); ++first) {
      const ShellWord& word = words[first];
      if (kDeclarers.contains(word.text)) {
        declares = declares || word.text == "export" || word.text == "declare" || word.text == "local" ||
                   word.text == "readonly";
        continue;
      }
      const std::size_t equal = word.text.find('=');
      if (equal == std::string::npos || !is_name(std::string_view(word.text).substr(0, equal))) break;
      ShellWord value = word;
      value.text = word.text.substr(equal + 1);
      command_.environment[word.text.substr(0, equal)] = value;
    }
    words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(first));
    if (words.empty() || declares) {
      for (auto& [name, value] : command_.environment) {
        // "${A:-1}" keeps its fallback through expansion; an unknown value stays a name without one.
        script_.variables[name] = value;
      }
    }
    if (!words.empty()) {
      command_.line = words[0].line;
      script_.commands.push_back(std::move(command_));
    }
    command_ = {};
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int line_;
  ShellScript script_;
  ShellCommand command_;
  ShellWord word_;
  bool in_word_ = false, in_array_ = false, skip_next_word_ = false;
  std::string array_name_;
  ShellWord array_;
  std::size_t count_ = 0;
};

}  // namespace

ShellScript parse_shell(std::string_view text, int first_line) { return ShellReader(text, first_line).run(); }

}  // namespace batchwright::check
