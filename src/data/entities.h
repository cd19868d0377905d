#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace batchwright::data {

struct Entity {
  std::string type;
  std::size_t first = 0, last = 0;  // words, both included

  bool operator==(const Entity&) const = default;
};

// The entities of one sentence's tags, as the CoNLL-2000 evaluation script conlleval reads them, and seqeval
// by default: an entity begins at a B (or S, U) tag, or where an I follows another type or an O, so IOB1 and
// IOB2 are both understood. Tags are "O" or a prefix (B, I, E, S, L, U), a dash and a type; E and L end an
// entity, S and U are one.
std::vector<Entity> find_entities(std::span<const std::string_view> tags);

}  // namespace batchwright::data
