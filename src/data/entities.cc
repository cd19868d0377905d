#include "data/entities.h"

namespace batchwright::data {
namespace {

struct Tag {
  char prefix = 'O';
  std::string_view type;
};

Tag read_tag(std::string_view text) {
  if (text.size() < 3 || text[1] != '-') return {};
  // BILOU's names for what IOBES calls E and S.
  const char prefix = text[0] == 'L' ? 'E' : text[0] == 'U' ? 'S' : text[0];
  return {prefix, text.substr(2)};
}

bool begins(const Tag& before, const Tag& tag) {
  if (tag.prefix == 'O') return false;
  if (tag.prefix == 'B' || tag.prefix == 'S') return true;
  const bool inside = before.prefix == 'B' || before.prefix == 'I';
  return !inside || tag.type != before.type;
}

bool ends(const Tag& tag, const Tag& after) {
  if (tag.prefix == 'O') return false;
  if (tag.prefix == 'E' || tag.prefix == 'S') return true;
  return after.prefix == 'O' || after.prefix == 'B' || after.prefix == 'S' || after.type != tag.type;
}

}  // namespace

std::vector<Entity> find_entities(std::span<const std::string_view> tags) {
  std::vector<Entity> entities;
  Tag before;
  std::size_t first = 0;
  for (std::size_t i = 0; i < tags.size(); ++i) {
    const Tag tag = read_tag(tags[i]);
    const Tag after = i + 1 < tags.size() ? read_tag(tags[i + 1]) : Tag{};
    if (begins(before, tag)) first = i;
    if (ends(tag, after)) entities.push_back({std::string(tag.type), first, i});
    before = tag;
  }
  return entities;
}

}  // namespace batchwright::data
