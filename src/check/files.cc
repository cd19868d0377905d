#include "check/files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <system_error>

#include "base/error.h"
#include "base/files.h"
#include "check/config_tree.h"
#include "check/log_read.h"
#include "check/roles.h"

namespace batchwright::check {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxFileBytes = 64ll << 20;
constexpr std::size_t kMaxFiles = 100'000;

bool contains(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

std::string extension_of(std::string_view path) {
  const std::size_t slash = path.find_last_of('/');
  const std::string_view base = slash == std::string_view::npos ? path : path.substr(slash + 1);
  const std::size_t dot = base.find_last_of('.');
  return dot == std::string_view::npos || dot == 0 ? "" : normal_key(base.substr(dot));
}

bool is_launch(std::string_view text) {
  return contains_any(text, {"torchrun ", "accelerate launch", "deepspeed --", "deepspeed train",
                             "torch.distributed.launch", "torch.distributed.run", "llamafactory-cli",
                             "axolotl train", "mpirun ", "srun ", "#SBATCH"}) ||
         (contains_any(text, {"python ", "python3 "}) && contains(text, " --"));
}

FileKind json_kind(std::string_view text) {
  if (contains_any(text, {"\"log_history\"", "\"grad_norm\"", "\"eval_loss\""})) return FileKind::Log;
  const bool model = contains_any(text, {"\"model_type\"", "\"architectures\""}) &&
                     contains_any(text, {"\"hidden_size\"", "\"n_embd\"", "\"vocab_size\"", "\"id2label\""});
  if (model && !contains_any(text, {"per_device_train_batch_size", "gradient_accumulation_steps"}))
    return FileKind::Model;
  if (contains(text, "\"loss\"") && looks_like_log(text)) return FileKind::Log;
  return FileKind::Tree;
}

// Text without a telling name: what it holds decides.
FileKind text_kind(std::string_view path, std::string_view text) {
  const std::string_view head = text.substr(0, 200'000);
  if (contains(head.substr(0, 4096), std::string_view("\0", 1))) return FileKind::Other;  // a program
  if (text.starts_with("#!") && contains_any(text.substr(0, 60), {"sh\n", "bash", "zsh"}))
    return FileKind::Shell;
  if (text.starts_with("#!") && contains(text.substr(0, 60), "python")) return FileKind::Python;
  if (contains(head, "```")) return FileKind::Page;
  const std::size_t first = head.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && head[first] == '{' && json_kind(head) != FileKind::Log &&
      head.find("\n{") == std::string_view::npos)
    return FileKind::Tree;
  if (looks_like_log(head)) return FileKind::Log;
  if (contains_any(head, {"vs hf ", "gradient_acc_step * world_size", "gradient accumulation steps to"}))
    return FileKind::Log;
  if (is_launch(head)) return FileKind::Shell;
  (void)path;
  return FileKind::Other;
}

bool skipped_folder(const std::string& name) {
  static const std::set<std::string> kSkipped = {"__pycache__", "node_modules", "site-packages", "venv",
                                                 "env",         "build",        "dist"};
  return (name.size() > 1 && name[0] == '.') || kSkipped.contains(name);
}

SourceFile read_source(const fs::path& path, bool named) {
  SourceFile file;
  file.path = path.string();
  file.named = named;
  try {
    file.text = read_file(path, kMaxFileBytes);
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::NotFound && named) throw;
    file.problem = e.message();
    return file;
  }
  file.kind = kind_of(file.path, file.text);
  return file;
}

bool worth_reading(const fs::path& path) {
  static const std::set<std::string> kExtensions = {
      ".py",  ".ipynb", ".json", ".jsonc", ".jsonl",  ".ndjson", ".yaml", ".yml",
      ".sh",  ".bash",  ".zsh",  ".slurm", ".sbatch", ".sub",    ".job",  ".log",
      ".txt", ".out",   ".err",  ".csv",   ".tsv",    ".md",     ".cmd",  ".toml"};
  const std::string extension = extension_of(path.string());
  return extension.empty() || kExtensions.contains(extension);
}

void walk(const fs::path& folder, std::vector<SourceFile>& files) {
  std::error_code error;
  std::vector<fs::path> found;
  fs::recursive_directory_iterator it(folder, fs::directory_options::skip_permission_denied, error), end;
  while (!error && it != end && found.size() < kMaxFiles) {
    const fs::path path = it->path();
    std::error_code status;
    if (it->is_directory(status) && skipped_folder(path.filename().string())) it.disable_recursion_pending();
    if (it->is_regular_file(status) && worth_reading(path) &&
        it->file_size(status) <= static_cast<std::uintmax_t>(kMaxFileBytes))
      found.push_back(path);
    it.increment(error);
  }
  std::sort(found.begin(), found.end());
  for (const fs::path& path : found) {
    SourceFile file = read_source(path, false);
    if (file.kind != FileKind::Other) files.push_back(std::move(file));
  }
}

}  // namespace

std::string base_name(std::string_view path) {
  const std::size_t slash = path.find_last_of('/');
  return std::string(slash == std::string_view::npos ? path : path.substr(slash + 1));
}

FileKind kind_of(std::string_view path, std::string_view text) {
  const std::string extension = extension_of(path);
  const std::string_view name = path.substr(path.find_last_of('/') + 1);
  if ((extension == ".txt" && name.find("requirements") != std::string_view::npos) ||
      name == "pyproject.toml")
    return FileKind::Requirements;
  if (extension == ".py" || extension == ".pyi") return FileKind::Python;
  if (extension == ".ipynb") return FileKind::Notebook;
  if (extension == ".json" || extension == ".jsonc") return json_kind(text);
  if (extension == ".jsonl" || extension == ".ndjson")
    return looks_like_log(text) ? FileKind::Log : FileKind::Other;
  if (extension == ".yaml" || extension == ".yml") return FileKind::Tree;
  if (extension == ".sh" || extension == ".bash" || extension == ".zsh" || extension == ".slurm" ||
      extension == ".sbatch" || extension == ".sub" || extension == ".job")
    return FileKind::Shell;
  if (extension == ".md") return FileKind::Page;
  if (extension == ".csv" || extension == ".tsv")
    return looks_like_log(text) ? FileKind::Log : FileKind::Other;
  return text_kind(path, text);
}

std::vector<SourceFile> gather_files(const std::vector<std::string>& arguments,
                                     std::string_view standard_input) {
  std::vector<SourceFile> files;
  for (const std::string& argument : arguments) {
    if (argument == "-") {
      SourceFile file{.path = "-",
                      .text = std::string(standard_input),
                      .kind = kind_of("", standard_input),
                      .named = true,
                      .problem = ""};
      // A script on the standard input has no name to tell it by.
      if (file.kind == FileKind::Other && contains_any(file.text, {"import ", "def "}))
        file.kind = FileKind::Python;
      if (file.kind == FileKind::Other) file.kind = FileKind::Tree;
      files.push_back(std::move(file));
      continue;
    }
    std::error_code error;
    if (fs::is_directory(argument, error))
      walk(argument, files);
    else
      files.push_back(read_source(argument, true));
  }
  return files;
}

std::vector<Block> blocks_of_page(std::string_view text) {
  std::vector<Block> blocks;
  std::size_t start = 0, block_start = 0;
  int line = 1, block_line = 1;
  bool inside = false;
  std::string language;
  const auto close = [&](std::size_t end) {
    if (end > block_start)
      blocks.push_back({text.substr(block_start, end - block_start), inside ? language : "", block_line});
  };
  while (start < text.size()) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    std::string_view row = text.substr(start, end - start);
    while (!row.empty() && (row.front() == ' ' || row.front() == '\t' || row.front() == '>'))
      row.remove_prefix(1);
    if (row.starts_with("```")) {
      close(start);
      inside = !inside;
      language = inside ? normal_key(row.substr(3, row.find_first_of(" \r{", 3) == std::string_view::npos
                                                       ? row.size()
                                                       : row.find_first_of(" \r{", 3) - 3))
                        : "";
      if (inside && language.empty()) language = "?";
      block_start = std::min(end + 1, text.size());
      block_line = line + 1;
    }
    start = end + 1;
    ++line;
  }
  close(text.size());
  return blocks;
}

}  // namespace batchwright::check
