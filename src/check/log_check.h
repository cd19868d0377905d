#pragma once

#include <string>
#include <vector>

#include "check/config_check.h"
#include "check/log_rules.h"

namespace batchwright::check {

// What the caller knows of all logs: --classes, --vocabulary.
struct LogHints {
  std::optional<double> classes, vocabulary;
  bool from_scratch = false;  // a file says that the weights are random at the start
};

struct LogResult {
  std::vector<LocatedFinding> findings;
  std::vector<std::size_t> records;    // by file: loss values read
  std::vector<std::string> summaries;  // by file: what was compared, when nothing is wrong
};

// Reads the logs together with the runs that the configurations beside them describe. `files` are the names
// by file index. Never throws on content.
LogResult check_logs(const std::vector<LogText>& logs, const std::vector<Run>& runs,
                     const std::vector<std::string>& files, const LogHints& hints);

}  // namespace batchwright::check
