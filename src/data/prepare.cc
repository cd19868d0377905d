#include "data/prepare.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/process.h"
#include "data/examples.h"
#include "data/labels.h"
#include "data/python.h"
#include "data/token_file.h"

namespace batchwright::data {
namespace {

constexpr std::chrono::milliseconds kPollInterval{100};

std::string hash_of_file(const std::filesystem::path& path) {
  const MappedFile file(path);
  return content_hash({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()});
}

std::filesystem::path tokenizer_of(const std::filesystem::path& model_folder) {
  if (!std::filesystem::is_directory(model_folder)) {
    throw Error(ErrorKind::NotFound, model_folder.string(), "is not a folder",
                "MODEL is a folder with config.json, model.safetensors and tokenizer.json; "
                "`hf download NAME --local-dir FOLDER` fetches one from the Hugging Face Hub");
  }
  std::filesystem::path path = model_folder / "tokenizer.json";
  if (!std::filesystem::exists(path)) {
    throw Error(ErrorKind::NotFound, path.string(), "is not there, and the texts need it",
                "AutoTokenizer.from_pretrained(folder).save_pretrained(folder) writes it");
  }
  return path;
}

// The model's end-of-text token: its id from config.json, else its text from tokenizer_config.json, else
// null.
Json end_of_text(const std::filesystem::path& model_folder) {
  for (const auto& [file, name] :
       {std::pair{"config.json", "eos_token_id"}, {"tokenizer_config.json", "eos_token"}}) {
    if (!std::filesystem::exists(model_folder / file)) continue;
    const Json document = read_json_file(model_folder / file);
    if (!document.is_object() || !document.contains(name)) continue;
    Json value = document.at(name);
    if (value.is_array() && !value.empty()) value = value.front();
    if (value.is_object() && value.contains("content")) value = value.at("content");
    if (value.is_number_unsigned() || value.is_string()) return value;  // some write -1 for none
  }
  return nullptr;
}

// What the token file is made from; its hash is the file's name in the cache.
struct Sources {
  Task task;
  std::filesystem::path tokenizer;
  std::string data_hash, tokenizer_hash, content_id;
  std::vector<std::string> model_names;
  Json how = Json::object();  // what the task's tokenising depends on beside texts and max_length
};

Json how_to_tokenise(const PrepareRequest& request, Task task) {
  if (task == Task::QuestionAnswering) {
    // Transformers' run_qa shares 128 of 384 tokens.
    return {{"doc_stride", request.doc_stride.value_or(request.max_length / 3)}};
  }
  if (task == Task::CausalLm) {
    return {{"packing", request.packing ? Json(*request.packing) : Json()},
            {"end_of_text", end_of_text(request.model_folder)}};
  }
  return Json::object();
}

Sources identify(const PrepareRequest& request) {
  Sources sources;
  sources.task = request.task ? *request.task : deduce_task(request.data, request.columns);
  sources.how = how_to_tokenise(request, sources.task);
  sources.tokenizer = tokenizer_of(request.model_folder);
  sources.data_hash = hash_of_file(request.data);
  sources.tokenizer_hash = hash_of_file(sources.tokenizer);
  sources.model_names = model_label_names(request.model_folder);
  const Json key = {{"format", TokenFile::kVersion},
                    {"task", task_name(sources.task)},
                    {"how", sources.how},
                    {"data", sources.data_hash},
                    {"extension", request.data.extension().string()},
                    {"tokenizer", sources.tokenizer_hash},
                    {"max_length", request.max_length},
                    {"columns", {request.columns.text, request.columns.text_pair, request.columns.label}},
                    {"classes", sources.model_names}};
  sources.content_id = content_hash(dump_line(key));
  return sources;
}

// A cached file that does not open (cut by a full disk, an older format) is made again.
bool is_whole(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) return false;
  try {
    TokenFile::open(path);
    return true;
  } catch (const Error&) {
    return false;
  }
}

std::string request_line(const PrepareRequest& request, const Sources& sources, const Examples& examples,
                         const std::filesystem::path& output) {
  Json head = {{"task", task_name(sources.task)},
               {"tokenizer", sources.tokenizer.string()},
               {"output", output.string()},
               {"max_length", request.max_length},
               {"label_names", examples.label_names},
               {"content_id", sources.content_id},
               {"examples", examples.count},
               {"pairs", examples.pairs},
               {"plain", examples.plain},
               {"source_hash", sources.data_hash},
               {"tokenizer_hash", sources.tokenizer_hash}};
  for (const auto& [name, value] : sources.how.items()) head[name] = value;
  return dump_line(head) + "\n";
}

// What the Python module has said so far on its output file.
struct Report {
  std::int64_t examples_done = 0;
  bool done = false;
  std::optional<std::string> failed;
  std::optional<std::int64_t> failed_example;
};

Report read_report(std::string_view output) {
  Report report;
  while (!output.empty()) {
    const std::size_t end = output.find('\n');
    const std::string_view line = output.substr(0, end);
    output.remove_prefix(end == std::string_view::npos ? output.size() : end + 1);
    // Warnings of Python or its libraries may stand between.
    const Json message = Json::parse(line, nullptr, false);
    if (!message.is_object()) continue;
    const JsonFields fields(message, "batchwright.prepare");
    report.examples_done = fields.integer("examples_done", 0, 1ll << 40, report.examples_done);
    report.done = fields.boolean("done", report.done);
    if (fields.has("failed")) report.failed = fields.text("failed");
    report.failed_example = fields.maybe_integer("example", 0, 1ll << 40);
  }
  return report;
}

// The files of processes that were killed while they tokenised: "NAME.tokens.PROCESS.request".
void remove_left_behind(const std::filesystem::path& folder) {
  std::error_code error;
  std::vector<std::filesystem::path> found;
  for (auto entry = std::filesystem::directory_iterator(folder, error);
       !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::filesystem::path& path = entry->path();
    if (path.extension() != ".request" && path.extension() != ".report" && path.extension() != ".partial")
      continue;
    const std::string number = path.stem().extension().string();  // ".PROCESS"
    pid_t owner = 0;
    const char* const end = number.data() + number.size();
    if (number.size() > 1 && std::from_chars(number.data() + 1, end, owner).ptr == end && owner > 0 &&
        has_ended(owner))
      found.push_back(path);
  }
  for (const std::filesystem::path& path : found) std::filesystem::remove(path, error);
}

// The two files through which the module is asked and answers; gone on scope exit.
struct Exchange {
  explicit Exchange(const std::filesystem::path& stem)
      : input(stem.string() + fmt::format(".{}.request", ::getpid())),
        output(stem.string() + fmt::format(".{}.report", ::getpid())) {}
  ~Exchange() {
    std::error_code ignored;
    std::filesystem::remove(input, ignored);
    std::filesystem::remove(output, ignored);
  }
  std::filesystem::path input, output;
};

ProcessOptions module_command(const Exchange& exchange) {
  ProcessOptions options;
  options.command = {python_interpreter(), "-m", "batchwright.prepare", exchange.input.string()};
  options.output_file = exchange.output;
  if (const std::filesystem::path folder = python_folder(); !folder.empty()) {
    const char* others = std::getenv("PYTHONPATH");
    options.environment["PYTHONPATH"] =
        folder.string() + (others != nullptr && *others != '\0' ? std::string(":") + others : "");
  }
  return options;
}

[[noreturn]] void explain_failure(const PrepareRequest& request, const Examples& examples,
                                  const Report& report, const std::string& output, const ExitStatus& status) {
  const std::string data = request.data.string();
  if (!report.failed) {
    throw Error(ErrorKind::NotFound, python_interpreter() + " -m batchwright.prepare",
                fmt::format("{} ({})", to_string(status), last_line(output)),
                "BATCHWRIGHT_PYTHON names the Python to use; it needs the tokenizers package");
  }
  if (report.failed_example && *report.failed_example < examples.count) {
    throw Error(ErrorKind::InvalidInput, fmt::format("{}:{}", data, examples.line_of(*report.failed_example)),
                *report.failed);
  }
  throw Error(ErrorKind::InvalidInput, "tokenising " + data, *report.failed,
              report.failed->find("no 'tokenizers' module") == std::string::npos
                  ? ""
                  : "pip install tokenizers there, or name another Python in BATCHWRIGHT_PYTHON");
}

void run_module(const PrepareRequest& request, const Examples& examples, const Exchange& exchange,
                const PrepareProgress& progress) {
  ChildProcess child = ChildProcess::start(module_command(exchange));
  std::optional<ExitStatus> status;
  while (!(status = child.wait(kPollInterval))) {
    if (progress && std::filesystem::exists(exchange.output)) {
      progress(read_report(read_file(exchange.output)).examples_done, examples.count);
    }
  }
  const std::string output = std::filesystem::exists(exchange.output) ? read_file(exchange.output) : "";
  const Report report = read_report(output);
  if (!status->succeeded() || !report.done) explain_failure(request, examples, report, output, *status);
  if (progress) progress(examples.count, examples.count);
}

}  // namespace

std::filesystem::path default_cache_folder() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::filesystem::path(value != nullptr ? value : "");
  };
  if (const auto chosen = variable("BATCHWRIGHT_CACHE"); !chosen.empty()) return chosen;
  if (const auto shared = variable("XDG_CACHE_HOME"); !shared.empty()) return shared / "batchwright";
  if (const auto home = variable("HOME"); !home.empty()) return home / ".cache" / "batchwright";
  return std::filesystem::temp_directory_path() / "batchwright-cache";
}

Prepared prepare(const PrepareRequest& request, const PrepareProgress& progress) {
  if (request.max_length < 1) {
    throw Error(ErrorKind::Usage, "max-length",
                fmt::format("is {}; it must be at least 1", request.max_length));
  }
  if (request.doc_stride && (*request.doc_stride < 0 || *request.doc_stride >= request.max_length)) {
    throw Error(ErrorKind::Usage, "--doc-stride",
                fmt::format("is {}; it must be at least 0 and below --max-length {}", *request.doc_stride,
                            request.max_length));
  }
  const Sources sources = identify(request);
  const std::filesystem::path folder =
      request.cache_folder.empty() ? default_cache_folder() : request.cache_folder;
  const std::filesystem::path output = folder / "tokens" / (sources.content_id + ".tokens");
  if (is_whole(output)) return {.token_file = output, .from_cache = true, .task = sources.task};

  const Examples examples = read_examples(request, sources.task, sources.model_names);
  remove_left_behind(output.parent_path());
  const Exchange exchange(output);
  const std::string head = request_line(request, sources, examples, output);
  write_file_atomic(exchange.input, std::vector<std::string_view>{head, examples.lines});
  run_module(request, examples, exchange, progress);
  TokenFile::open(output);
  return {.token_file = output, .from_cache = false, .task = sources.task};
}

}  // namespace batchwright::data
