#include "check/library_versions.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "check/kinds.h"

namespace batchwright::check {
namespace {

using Version = std::array<int, 3>;

struct KnownBug {
  Version first, last;
  std::string_view what, fix;
};

constexpr KnownBug kBugs[] = {
    // huggingface/transformers issues 35556 and 37766; mended by pull request 35207.
    {{4, 46, 0},
     {4, 47, 1},
     "its Trainer adds up the losses of a window for models and own losses that take no num_items_in_batch",
     "transformers>=4.48"},
    // docs/your-script.md: sequence classification with MiniLM, loss and gradient norm N times those of N
    // = 1.
    {{5, 24, 0},
     {5, 24, 0},
     "its Trainer leaves the loss of a sequence classifier undivided: loss and gradient are N times too "
     "large",
     "another release; `batchwright verify -- CMD` shows whether it divides"},
};

// "4.47.1" at the start of a text; the third part may be left out.
std::optional<Version> version_at(std::string_view text) {
  Version version{};
  std::size_t at = 0;
  for (std::size_t part = 0; part < version.size(); ++part) {
    if (part > 0) {
      if (at >= text.size() || text[at] != '.') return part >= 2 ? std::optional(version) : std::nullopt;
      ++at;
    }
    const std::size_t start = at;
    while (at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])) && at - start < 4)
      version[part] = version[part] * 10 + (text[at++] - '0');
    if (at == start) return part >= 2 ? std::optional(version) : std::nullopt;
  }
  return version;
}

// The release behind the word: "transformers==4.47.1", "- `transformers` version: 4.47.1",
// "transformers 4.47.1". Lower and upper bounds name no release.
std::optional<Version> release_behind(std::string_view rest) {
  constexpr std::string_view kBetween = "` =:\"'\t";
  std::size_t at = 0;
  const auto skip = [&] {
    while (at < rest.size() && at < 24 && kBetween.find(rest[at]) != std::string_view::npos) ++at;
  };
  skip();
  if (rest.substr(at).starts_with("version")) {
    at += 7;
    skip();
  }
  return at == 0 ? std::nullopt : version_at(rest.substr(at));
}

}  // namespace

std::optional<Finding> known_library_bug(std::string_view text) {
  constexpr std::string_view kName = "transformers";
  for (std::size_t at = text.find(kName); at != std::string_view::npos; at = text.find(kName, at + 1)) {
    const char before = at > 0 ? text[at - 1] : ' ';
    if (std::isalnum(static_cast<unsigned char>(before)) || before == '-' || before == '_') continue;
    const auto version = release_behind(text.substr(at + kName.size(), 64));
    if (!version) continue;
    for (const KnownBug& bug : kBugs) {
      if (*version < bug.first || *version > bug.last) continue;
      const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
      Finding note = make_finding("library_bug", static_cast<int>(line));
      note.what = fmt::format("Transformers {}.{}.{} is used with accumulation", (*version)[0], (*version)[1],
                              (*version)[2]);
      note.consequence = bug.what;
      note.fix = bug.fix;
      return note;
    }
  }
  return std::nullopt;
}

}  // namespace batchwright::check
