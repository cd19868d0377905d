#pragma once

#include <string>
#include <vector>

namespace batchwright {

enum class Align { Left, Right };

// A plain-text table for people: columns padded to their widest cell, two spaces between, no colour.
class Table {
 public:
  struct Column {
    std::string title;
    Align align = Align::Right;
  };

  explicit Table(std::vector<Column> columns);
  void add_row(std::vector<std::string> cells);  // missing cells are empty
  bool empty() const { return rows_.empty(); }
  // Ends with a newline. Widths count code points, not bytes.
  std::string to_string() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace batchwright
