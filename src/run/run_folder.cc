#include "run/run_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/files.h"

namespace batchwright::run {
namespace {

constexpr const char* kRunFile = "run.json";
constexpr const char* kTrialsFile = "trials.jsonl";
constexpr const char* kResultFile = "result.json";
constexpr const char* kLockFile = "lock";

std::string pretty(const Json& document) {
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

struct RunFile {
  Json request, facts = Json::object();
};

RunFile read_run_file(const std::filesystem::path& path) {
  const Json document = read_json_file(path);
  const JsonFields fields(document, path.string());
  fields.integer("version", 1, 1);
  const Json* request = fields.find("request");
  if (request == nullptr) throw Error(ErrorKind::InvalidInput, path.string(), "\"request\" is missing");
  const Json* facts = fields.find("facts");
  return {*request, facts != nullptr ? *facts : Json::object()};
}

struct Descriptor {
  explicit Descriptor(int opened) : number(opened) {}
  ~Descriptor() { ::close(number); }
  Descriptor(const Descriptor&) = delete;
  int number;
};

// An exclusive lock on the folder's lock file, with this process's number in it. Made by the system for the
// descriptor, so a kill releases it.
std::shared_ptr<void> lock_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  const std::filesystem::path file = folder / kLockFile;
  const int descriptor = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor < 0) {
    const std::string reason = error ? error.message() : std::strerror(errno);
    throw Error(ErrorKind::InvalidInput, folder.string(), fmt::format("cannot be written ({})", reason),
                "Name another folder with --run");
  }
  auto held = std::make_shared<Descriptor>(descriptor);
  if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    char owner[32] = "";
    const ssize_t length = ::read(descriptor, owner, sizeof owner - 1);
    throw Error(ErrorKind::Usage, folder.string(),
                fmt::format("another batchwright is running in it (process {})",
                            length > 0 ? std::string(owner, static_cast<std::size_t>(length)) : "unknown"),
                "Wait for it, or name another folder with --run");
  }
  const std::string own = std::to_string(::getpid());
  if (::ftruncate(descriptor, 0) == 0) (void)!::write(descriptor, own.data(), own.size());
  return held;
}

bool holds_nothing_else(const std::filesystem::path& folder) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().filename() != kLockFile) return false;
  }
  return true;
}

// The names of the fields in which two requests differ, for the message.
std::string differences(const Json& ours, const Json& theirs) {
  std::string names;
  const auto note = [&](const std::string& name) { names += (names.empty() ? "" : ", ") + name; };
  for (const auto& [name, value] : ours.items()) {
    if (!theirs.is_object() || !theirs.contains(name) || theirs.at(name) != value) {
      if (value.is_object() && theirs.is_object() && theirs.contains(name) && theirs.at(name).is_object()) {
        for (const auto& [inner, inner_value] : value.items()) {
          if (!theirs.at(name).contains(inner) || theirs.at(name).at(inner) != inner_value) note(inner);
        }
      } else {
        note(name);
      }
    }
  }
  return names;
}

}  // namespace

RunFolder::RunFolder(std::filesystem::path path, Json request, bool overwrite)
    : path_(std::move(path)), request_(std::move(request)) {
  const std::filesystem::path run_file = path_ / kRunFile;
  std::error_code error;
  if (!std::filesystem::exists(path_, error) || std::filesystem::exists(run_file, error) ||
      std::filesystem::exists(path_ / kLockFile, error)) {
    lock_ = lock_folder(path_);
  }
  if (std::filesystem::exists(run_file, error) && !overwrite) {
    RunFile former = read_run_file(run_file);
    if (former.request != request_) {
      throw Error(ErrorKind::Usage, path_.string(),
                  fmt::format("holds a run of another request (differs in: {})",
                              differences(request_, former.request)),
                  "Name another folder with --run, or give --overwrite to replace it");
    }
    opening_ = Opening::Continued;
    facts_ = std::move(former.facts);
    read_trials();
    return;
  }
  if (std::filesystem::exists(path_, error)) {
    if (!std::filesystem::is_directory(path_, error)) {
      throw Error(ErrorKind::Usage, path_.string(), "is a file, and --run names a folder");
    }
    if (!std::filesystem::exists(run_file, error) && !holds_nothing_else(path_)) {
      throw Error(ErrorKind::Usage, path_.string(), "holds files that are not a run's",
                  "Name a new or empty folder with --run");
    }
  }
  if (!lock_) lock_ = lock_folder(path_);
  std::filesystem::remove(path_ / kTrialsFile, error);
  std::filesystem::remove(path_ / kResultFile, error);
  write_run_file();
}

RunFolder RunFolder::open(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) {
    throw Error(ErrorKind::NotFound, path.string(), "is not a folder",
                "Give the folder that `batchwright tune` named");
  }
  RunFolder folder;
  folder.path_ = path;
  RunFile file = read_run_file(path / kRunFile);
  folder.request_ = std::move(file.request);
  folder.facts_ = std::move(file.facts);
  folder.opening_ = Opening::Continued;
  folder.read_trials();
  return folder;
}

void RunFolder::read_trials() {
  const std::filesystem::path file = path_ / kTrialsFile;
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return;
  const std::string text = read_file(file);
  std::size_t begin = 0;
  for (int number = 1; begin < text.size(); ++number) {
    const std::size_t end = text.find('\n', begin);
    const std::string subject = fmt::format("line {} of {}", number, file.string());
    if (end == std::string::npos) {
      // A kill tore the last line: that trial is lost, and its rest must not spoil the next line.
      if (::truncate(file.c_str(), static_cast<off_t>(begin)) != 0) {
        throw Error(ErrorKind::InvalidInput, subject, "is torn and cannot be cut off");
      }
      return;
    }
    trials_.push_back(trial_from_json(parse_json(text.substr(begin, end - begin), subject), subject));
    begin = end + 1;
  }
}

void RunFolder::write_run_file() const {
  write_file_atomic(path_ / kRunFile, pretty({{"version", 1},
                                              {"program", fmt::format("batchwright {}", BATCHWRIGHT_VERSION)},
                                              {"request", request_},
                                              {"facts", facts_}}));
}

void RunFolder::append(const Trial& trial) {
  append_line_synced(path_ / kTrialsFile, dump_line(to_json(trial)));
  trials_.push_back(trial);
}

void RunFolder::set_facts(const Json& facts) {
  if (facts == facts_) return;
  facts_ = facts;
  write_run_file();
}

void RunFolder::write_result(const Json& result) const {
  write_file_atomic(path_ / kResultFile, pretty(result));
}

void RunFolder::discard() {
  if (opening_ != Opening::Created || !trials_.empty()) return;
  std::error_code error;
  for (const char* name :
       {kRunFile, kTrialsFile, kResultFile, "job.json", "worker.log", "steps.jsonl", kLockFile}) {
    std::filesystem::remove(path_ / name, error);
  }
  // remove() takes a folder only when it is empty.
  std::filesystem::remove(path_, error);
  if (path_.has_parent_path()) std::filesystem::remove(path_.parent_path(), error);
}

void refuse_folder_in_use(const std::filesystem::path& folder) {
  std::error_code error;
  if (std::filesystem::exists(folder / kLockFile, error)) lock_folder(folder);
}

std::filesystem::path unused_folder(const std::filesystem::path& base) {
  std::filesystem::path candidate = base;
  std::error_code error;
  for (int number = 2; std::filesystem::exists(candidate, error); ++number)
    candidate = numbered_folder(base, number);
  return candidate;
}

std::filesystem::path numbered_folder(const std::filesystem::path& base, int number) {
  return base.string() + fmt::format("-{}", number);
}

}  // namespace batchwright::run
