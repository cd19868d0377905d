#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace batchwright::check {

struct ShellWord {
  std::string text;     // after expansion and removal of quotes
  std::string inexact;  // of arithmetic within it, see Computed::inexact
  int line = 0;
  bool unknown = false;  // holds an expansion whose value the script does not give
};

// One simple command: assignments before it, then its words.
struct ShellCommand {
  std::map<std::string, ShellWord> environment;
  std::vector<ShellWord> words;
  int line = 0;
};

struct ShellScript {
  std::vector<ShellCommand> commands;           // in order, variables expanded with the values they had there
  std::map<std::string, ShellWord> variables;   // at the end; scheduler directives set their SLURM_* ones
  std::map<std::string, ShellWord> directives;  // "#SBATCH --nodes=2" -> nodes
};

// Splits a script into simple commands. Knows quotes, continuations, comments, ; && || | & and newlines,
// NAME=value, export, ${NAME:-default}, $((arithmetic)) and arrays. Control flow is read straight through:
// both branches of an `if` are commands. Never fails; work is bounded by the length of the text.
ShellScript parse_shell(std::string_view text, int first_line);

}  // namespace batchwright::check
