#include "run/worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <limits>
#include <utility>

#include "base/clock.h"
#include "base/error.h"

namespace batchwright::run {
namespace {

std::int64_t size_of(const std::filesystem::path& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  return error ? 0 : static_cast<std::int64_t>(size);
}

std::vector<ChildProcess> start(const WorkerCommand& command, const std::filesystem::path& socket,
                                const MemoryGroup* group) {
  ProcessOptions options;
  options.command = group != nullptr ? group->entered_by(command.command) : command.command;
  options.environment = command.environment;
  options.environment["BATCHWRIGHT_SOCKET"] = socket.string();
  options.working_folder = command.working_folder;
  options.output_file = command.log_file;
  options.address_space_bytes = command.address_space_bytes;
  if (group == nullptr && command.memory_limit_bytes > 0)
    options.address_space_bytes = command.memory_limit_bytes;
  std::vector<ChildProcess> processes;
  for (int rank = 0; rank < command.processes; ++rank) {
    if (command.processes > 1) {
      const std::string world_size = std::to_string(command.processes);
      options.environment["RANK"] = options.environment["LOCAL_RANK"] = std::to_string(rank);
      options.environment["WORLD_SIZE"] = options.environment["LOCAL_WORLD_SIZE"] = world_size;
      options.environment["MASTER_ADDR"] = "127.0.0.1";
      options.environment["BATCHWRIGHT_PORT_FILE"] = (socket.parent_path() / "port").string();
    }
    processes.push_back(ChildProcess::start(options));
  }
  return processes;
}

// Until work must end whatever happens; none: for ever.
double seconds_to_stop(const InterruptGuard* interrupt) {
  if (interrupt == nullptr || !interrupt->stops_at()) return std::numeric_limits<double>::infinity();
  return std::max(0.0, *interrupt->stops_at() - steady_seconds());
}

}  // namespace

Worker::Worker(const WorkerCommand& command, const InterruptGuard* interrupt)
    : log_file_(command.log_file),
      log_start_(size_of(command.log_file)),
      listener_(std::make_unique<Listener>()),
      memory_group_(command.memory_limit_bytes > 0 ? MemoryGroup::create(command.memory_limit_bytes)
                                                   : nullptr),
      oom_kills_(memory_group_.get()),
      processes_(start(command, listener_->socket_path(), memory_group_.get())),
      interrupt_(interrupt) {}

Worker::Event Worker::next(double timeout_seconds) {
  const double deadline = steady_seconds() + timeout_seconds;
  bool over = false;
  while (true) {
    if (interrupt_ != nullptr) interrupt_->check();
    if (!waiting_.empty()) {
      Event event = std::move(waiting_.front());
      waiting_.pop_front();
      return event;
    }
    if (over) return {Event::Kind::Exited, Stop{}, ""};
    // The end is looked at first and the socket once more after it: a last message must not be lost.
    over = ended();
    std::vector<int> wake;
    for (ChildProcess& process : processes_) {
      if (process.running()) wake.push_back(process.exit_descriptor());
    }
    if (interrupt_ != nullptr) wake.push_back(interrupt_->descriptor());
    const double left = over ? 0 : deadline - steady_seconds();
    if (left <= 0 && !over && timeout_seconds > 0) return {Event::Kind::Silent, Stop{}, ""};
    const auto events = listener_->wait(std::min(left, seconds_to_stop(interrupt_)), wake);
    for (const Listener::Event& event : events) {
      if (event.kind == Listener::Event::Kind::Closed) {
        if (event.connection == leader_) hung_up();
        continue;
      }
      if (event.kind == Listener::Event::Kind::Garbage) {
        if (event.connection == leader_) leader_ = -1;
        waiting_.push_back({Event::Kind::Garbage, Stop{}, event.error});
        continue;
      }
      if (const auto* hello = std::get_if<Hello>(&event.message); hello != nullptr && hello->rank == 0) {
        leader_ = event.connection;
      }
      waiting_.push_back({Event::Kind::Said, event.message, ""});
    }
    if (timeout_seconds <= 0 && waiting_.empty() && !over) return {Event::Kind::Silent, Stop{}, ""};
  }
}

// All processes ended, or one failed: the others only wait for it then.
bool Worker::ended() {
  std::size_t done = 0;
  for (ChildProcess& process : processes_) {
    const auto status = process.wait(std::chrono::milliseconds(0));
    if (status && !status->succeeded()) return true;
    done += status ? 1 : 0;
  }
  return done == processes_.size();
}

// A connection closes a moment before its process ends; one that goes on running without it is out of reach.
void Worker::hung_up() {
  leader_ = -1;
  if (processes_.front().wait(std::chrono::seconds(10))) return;
  waiting_.push_back({Event::Kind::Garbage, Stop{}, "it closed its connection and went on running"});
}

bool Worker::send(const Message& message) { return leader_ >= 0 && listener_->send(leader_, message); }

std::string Worker::printed() const {
  constexpr std::int64_t kTail = 1 << 16;
  std::ifstream file(log_file_, std::ios::binary);
  const std::int64_t size = size_of(log_file_), begin = std::max(log_start_, size - kTail);
  if (!file || size <= begin) return "";
  std::string text(static_cast<std::size_t>(size - begin), '\0');
  file.seekg(begin);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

Failure Worker::failure() {
  // A signal that we did not send says most, then a failed exit; what we end now says nothing.
  std::optional<std::size_t> failed;
  for (std::size_t rank = 0; rank < processes_.size(); ++rank) {
    const auto status = processes_[rank].wait(std::chrono::milliseconds(0));
    if (!status || status->succeeded()) continue;
    if (!failed || (status->signal && !processes_[*failed].wait(std::chrono::milliseconds(0))->signal))
      failed = rank;
  }
  for (ChildProcess& process : processes_) process.end();
  const ExitStatus status = processes_[failed.value_or(0)].end();
  peak_resident_bytes_ = status.peak_resident_bytes;
  listener_->close_all();
  Failure failure = classify_failure(status, printed(), oom_kills_.risen());
  if (processes_.size() > 1 && failed) {
    failed_rank_ = static_cast<int>(*failed);
    failure.reason = fmt::format("rank {} {}", *failed, failure.reason);
  }
  return failure;
}

void Worker::stop(double seconds) {
  const double deadline = steady_seconds() + (send(Stop{}) ? seconds : 0);
  for (ChildProcess& process : processes_) {
    const auto left = static_cast<std::int64_t>(1000 * std::max(0.0, deadline - steady_seconds()));
    process.wait(std::chrono::milliseconds(left));
    peak_resident_bytes_ = std::max(peak_resident_bytes_, process.end().peak_resident_bytes);
  }
}

}  // namespace batchwright::run
