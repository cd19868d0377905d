#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "check/config_rules.h"

namespace batchwright::check {

// What one configuration text says, by its file's kind.
enum class ConfigForm { Tree, Shell, Python };

struct ConfigText {
  ConfigForm form = ConfigForm::Tree;
  std::string_view text;
  std::size_t file = 0;  // index of the file it comes from
  int first_line = 1;    // of the text within the file
  bool settings_module =
      false;  // Python without a loop: its constants are a configuration, not a script's variables
};

struct ConfigResult {
  std::vector<LocatedFinding> findings;
  std::vector<bool> understood;        // by file: it held settings, or a command that trains
  std::vector<std::string> problems;   // by file: why it could not be read
  std::vector<std::string> summaries;  // by file: the effective batch that it implies, with its factors
  std::vector<Run> runs;
};

// Reads all texts together and checks every run that they describe. `files` are the names for messages, one a
// file index. Never throws on content.
ConfigResult check_configurations(const std::vector<ConfigText>& texts,
                                  const std::vector<std::string>& files);

}  // namespace batchwright::check
