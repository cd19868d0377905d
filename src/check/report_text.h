#pragma once

#include <string>
#include <vector>

#include "check/files.h"
#include "check/finding.h"

namespace batchwright::check {

// Lines as compilers print them: "file:line: mistake kind: what", then what follows, what to write instead,
// and the changed line as a diff where one line mends it. Ends with one line of totals.
std::string report_text(const std::vector<FileReport>& reports, const std::vector<SourceFile>& files);

}  // namespace batchwright::check
