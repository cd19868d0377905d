#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "run/trial.h"

namespace batchwright::run {

// The folder that holds all that is known of one run: run.json (what was asked, versions, hardware),
// trials.jsonl (one synced line a finished trial) and result.json. Killed at any moment, at most the running
// trial is lost.
class RunFolder {
 public:
  enum class Opening { Created, Continued };

  // Creates the folder with `request` in run.json, or continues one whose request is the same. Throws Usage
  // when the folder holds another request or files of something else, and `overwrite` is not set; with it,
  // run.json, trials.jsonl and result.json are replaced. While the object lives nobody else opens the folder
  // for a run: a second batchwright in it gets Usage with the other's process number.
  RunFolder(std::filesystem::path path, Json request, bool overwrite = false);

  // An existing folder, for reading. Throws NotFound or InvalidInput naming the file.
  static RunFolder open(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  Opening opening() const { return opening_; }
  const Json& request() const { return request_; }
  const std::vector<Trial>& trials() const { return trials_; }
  std::filesystem::path log_file() const { return path_ / "worker.log"; }

  void append(const Trial& trial);
  // Facts learnt later (versions, device): kept beside the request in run.json.
  void set_facts(const Json& facts);
  const Json& facts() const { return facts_; }
  void write_result(const Json& result) const;
  // Takes back a folder that this object created and that holds no trial yet: a request that turned out to be
  // wrong leaves nothing behind. Files of others stay.
  void discard();

 private:
  RunFolder() = default;
  void read_trials();
  void write_run_file() const;

  std::filesystem::path path_;
  Json request_, facts_ = Json::object();
  std::vector<Trial> trials_;
  Opening opening_ = Opening::Created;
  std::shared_ptr<void> lock_;  // released by the system however the process ends
};

// Throws Usage with the other's process number when a batchwright runs in the folder.
void refuse_folder_in_use(const std::filesystem::path& folder);
// The first folder of `base`, `base`-2, `base`-3, ... that does not exist.
std::filesystem::path unused_folder(const std::filesystem::path& base);
// `base`-`number`.
std::filesystem::path numbered_folder(const std::filesystem::path& base, int number);

}  // namespace batchwright::run
