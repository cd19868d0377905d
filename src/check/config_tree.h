#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace batchwright::check {

// One value of a configuration document with the line on which it stands. JSON, JSON with comments, YAML and
// a Python dict literal all become this one tree, so that the rules need not know which it was.
struct ConfigNode {
  enum class Kind { Null, Scalar, Map, List };

  Kind kind = Kind::Null;
  std::string text;     // of a scalar, unquoted
  bool quoted = false;  // a scalar written in quotes: a string, whatever it looks like
  int line = 0;         // 1-based
  std::vector<std::pair<std::string, ConfigNode>> map;  // in the order written
  std::vector<ConfigNode> list;

  // The value of a key of this map (nullptr when it is absent or this is no map); keys compare without regard
  // to case and with '-' as '_'.
  const ConfigNode* find(std::string_view key) const;
  // The scalar's value as a number: "1_000", "5e-5" and quoted digits included. Empty for anything else.
  std::optional<double> number() const;
  bool is_true() const;  // true, True, yes, on, 1
};

// "Per-Device-Train-Batch-Size" -> "per_device_train_batch_size".
std::string normal_key(std::string_view key);

// A number as configurations write it ("1_000", "12,000", "5e-5", "10k"); empty when the text is anything
// else.
std::optional<double> parse_number(std::string_view text);

// Parses YAML or JSON (comments and trailing commas allowed). Several YAML documents become a list. Throws
// InvalidInput with the line when the text is neither, nests deeper than 64 levels, or expands through
// aliases to more than 100,000 values.
ConfigNode parse_config_tree(std::string_view text, const std::string& subject);

}  // namespace batchwright::check
