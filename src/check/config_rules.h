#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "check/config_run.h"
#include "check/finding.h"

namespace batchwright::check {

// A finding and the file (an index into those read together) that it is about.
struct LocatedFinding {
  std::size_t file = 0;
  Finding finding;
  std::string written,
      better;  // a value on the finding's line and what should stand in its place; may be empty
};

// Where rules put what they find; the same kind at the same line is kept once.
class FindingList {
 public:
  // A finding of the catalogue at a setting, or at a section's first line when there is no setting.
  Finding& add(std::string_view kind, const Setting& at);
  Finding& add(std::string_view kind, std::size_t file, int line);
  // Says that the finding added last is mended by writing `better` in place of the setting's value.
  void correct(const Setting& setting, std::string better);
  std::vector<LocatedFinding> take();

 private:
  std::deque<LocatedFinding> all_;  // add returns references that must live on
};

// Each looks at one run and reports what is certain from it.
void check_world_size(const Run& run, const std::vector<std::string>& files, FindingList& found);
void check_accumulation_places(const Run& run, const std::vector<std::string>& files, FindingList& found);
void check_divisibility(const Run& run, const std::vector<std::string>& files, FindingList& found);
void check_two_places(const Run& run, const std::vector<std::string>& files, FindingList& found);
void check_engine_rates(const Run& run, const std::vector<std::string>& files, FindingList& found);
void check_overrides(const Run& run, const std::vector<std::string>& files, FindingList& found);
void check_clipping(const Run& run, const std::vector<std::string>& files, FindingList& found);
void check_types(const Run& run, const std::vector<std::string>& files, FindingList& found);
void check_step_counts(const Run& run, const std::vector<std::string>& files, FindingList& found);
void check_equivalence(const Run& run, const std::vector<std::string>& files, FindingList& found);

// "gradient_accumulation_steps = 4 (run.sh:12)".
std::string spell(const Setting& setting, const std::vector<std::string>& files);
// "8" for 8.0, "0.5" for 0.5.
std::string spell(double number);
// "run.sh:12".
std::string place(std::size_t file, int line, const std::vector<std::string>& files);

}  // namespace batchwright::check
