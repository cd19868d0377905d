#pragma once

#include <vector>

#include "base/json.h"
#include "check/finding.h"

namespace batchwright::check {

// The document of `check --json`: {"version", "files": [{"path", "verdict", "findings": [...]}]}. A finding
// without a line has null there. Files of which nothing can be told carry "missing".
Json report_json(const std::vector<FileReport>& reports);

// SARIF 2.1.0 (OASIS), which code hosts show beside the lines: a mistake is an error, a note a note.
Json report_sarif(const std::vector<FileReport>& reports);

}  // namespace batchwright::check
