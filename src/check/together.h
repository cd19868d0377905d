#pragma once

#include <vector>

#include "check/files.h"
#include "check/finding.h"
#include "check/log_check.h"

namespace batchwright::check {

struct CheckOptions {
  LogHints hints;
  bool separate = false;  // every file by itself: nothing is compared between files
};

// Checks the files as parts of the same runs: loops by simulation, configurations against each other, logs
// against both. One report a file, in the files' order; files that a folder holds and that say nothing of
// training are left out. Never throws on content.
std::vector<FileReport> check_together(const std::vector<SourceFile>& files, const CheckOptions& options);

}  // namespace batchwright::check
