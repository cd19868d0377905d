#pragma once

#include <filesystem>
#include <string>

namespace batchwright::data {

// The Python that runs the project's Python modules: BATCHWRIGHT_PYTHON in the environment, else the one that
// was configured at build time if it is still there, else python3 from PATH.
std::string python_interpreter();

// The folder to put on PYTHONPATH so that `import batchwright` works: ../lib/batchwright/python beside the
// running program when installed, else the source tree's. Empty when neither is there: the interpreter then
// needs the package installed.
std::filesystem::path python_folder();

// The hook's machine code, ../lib/batchwright beside the running program; empty when it was not built.
std::filesystem::path hook_recorder();

}  // namespace batchwright::data
