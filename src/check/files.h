#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace batchwright::check {

enum class FileKind {
  Python,
  Notebook,
  Tree,  // YAML or JSON with settings
  Shell,
  Log,
  Page,          // Markdown or plain text with fenced blocks, commands and output
  Requirements,  // pinned packages
  Model,         // a model's config.json: sizes that logs are judged by
  Other,
};

// One file as given or found in a folder. `text` is empty for a file that could not be read; `problem` says
// why.
struct SourceFile {
  std::string path;
  std::string text;
  FileKind kind = FileKind::Other;
  bool named = false;  // on the command line, not found in a folder
  std::string problem;
};

std::string base_name(std::string_view path);  // after the last slash

// What kind of file this is, by its name and, where a name says little, by its content.
FileKind kind_of(std::string_view path, std::string_view text);

// The files that the arguments stand for: a file itself, a folder's files (hidden folders, build and package
// folders left out), "-" for the standard input, read by the caller. Files of a folder that are of no kind
// that is checked are left out. Throws NotFound for an argument that does not exist.
std::vector<SourceFile> gather_files(const std::vector<std::string>& arguments,
                                     std::string_view standard_input);

// Fenced blocks of a page with the line on which each begins and the language named; text between them is one
// block without a language.
struct Block {
  std::string_view text;
  std::string language;
  int first_line = 1;
};
std::vector<Block> blocks_of_page(std::string_view text);

}  // namespace batchwright::check
