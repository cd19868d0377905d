#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "run/trial.h"

namespace batchwright::tune {

// Trials of finished searches, by the question they answer: everything that decides how long a step takes and
// that can be seen without running one (the request, the machine, its driver, the libraries' versions). One
// file a question; a file that is damaged or answers another question counts as absent.
class TuningCache {
 public:
  TuningCache(std::filesystem::path folder, Json key) : folder_(std::move(folder)), key_(std::move(key)) {}

  struct Answer {
    std::vector<run::Trial> trials;
    Json facts;        // the run's: framework and device
    std::string when;  // "2026-11-30"
  };
  std::optional<Answer> find() const;
  // A cache that cannot be written costs the next search its time and nothing else: nothing is thrown.
  void store(const std::vector<run::Trial>& trials, const Json& facts) const;

 private:
  std::filesystem::path file() const;

  std::filesystem::path folder_;
  Json key_;
};

// What this machine adds to the question: processor, usable threads, memory, GPUs, and their driver's version
// line.
Json machine_key();

}  // namespace batchwright::tune
