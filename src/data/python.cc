#include "data/python.h"

#include <cstdlib>

#include "base/process.h"

namespace batchwright::data {
namespace {

std::filesystem::path library_folder() {
  return running_program().parent_path().parent_path() / "lib" / "batchwright";
}

}  // namespace

std::string python_interpreter() {
  const char* chosen = std::getenv("BATCHWRIGHT_PYTHON");
  if (chosen != nullptr && *chosen != '\0') return chosen;
  const std::string configured = BATCHWRIGHT_PYTHON;
  return !configured.empty() && std::filesystem::exists(configured) ? configured : "python3";
}

std::filesystem::path python_folder() {
  std::error_code ignored;
  for (const std::filesystem::path& folder :
       {library_folder() / "python", std::filesystem::path(BATCHWRIGHT_SOURCE_DIR) / "python"}) {
    if (std::filesystem::exists(folder / "batchwright" / "prepare.py", ignored)) return folder;
  }
  return {};
}

std::filesystem::path hook_recorder() {
  std::error_code ignored;
  const std::filesystem::path file = library_folder() / "batchwright_recorder.abi3.so";
  return std::filesystem::exists(file, ignored) ? file : std::filesystem::path();
}

}  // namespace batchwright::data
