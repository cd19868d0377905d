#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace batchwright::check {

enum class Severity { Mistake, Note };
enum class Affects { Gradient, Schedule, Report, Memory };
enum class Verdict { Ok, Mistake, CannotTell };

// A line of the file as it should read.
struct Edit {
  int line = 0;                    // 1-based
  std::string old;                 // what stands there
  std::vector<std::string> lines;  // what stands there instead; none: the line goes
};

// One thing found at one place. `kind` is a name of the catalogue (src/check/kinds.h).
struct Finding {
  std::string kind;
  Severity severity = Severity::Mistake;
  int line = 0;             // 1-based; 0 when the finding has no line (a log as a whole)
  std::string what;         // what the file does, in one clause
  std::string consequence;  // what follows, in numbers where they are known
  std::string fix;          // what to write instead
  Affects affects = Affects::Gradient;
  std::vector<Edit> edits;  // the corrected lines, in order, where changing a few mends it; may be empty
  // For loops: the weight with which each micro-batch enters an optimizer step, by label ("step 3": [..]).
  std::optional<std::map<std::string, std::vector<double>>> effective_weights;
};

struct FileReport {
  std::string path;
  Verdict verdict = Verdict::Ok;
  std::vector<Finding> findings;
  std::string missing;  // for CannotTell: what would have to be known
  std::string
      summary;  // what the file implies when nothing is wrong ("effective batch 64 = ..."); may be empty
};

}  // namespace batchwright::check
