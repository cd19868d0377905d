#pragma once

#include <string_view>
#include <vector>

namespace batchwright::cli {

struct DocPage {
  std::string_view name;  // "tune" for docs/tune.md
  std::string_view text;
};

// The pages of docs/, embedded at build time (cmake/embed_docs.cmake).
const std::vector<DocPage>& doc_pages();

}  // namespace batchwright::cli
