#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/interrupt.h"
#include "base/process.h"
#include "run/failure.h"
#include "run/listener.h"
#include "run/memory_group.h"

namespace batchwright::run {

struct WorkerCommand {
  std::vector<std::string> command;
  std::map<std::string, std::optional<std::string>> environment;  // BATCHWRIGHT_SOCKET is added
  std::filesystem::path working_folder;
  std::filesystem::path log_file;        // what it prints, appended
  std::int64_t address_space_bytes = 0;  // 0: no limit
  // Held by a control group of the kernel where it lets us make one, by the address space elsewhere; 0: no
  // limit.
  std::int64_t memory_limit_bytes = 0;
  // More than one: so many processes, with the environment variables by which torchrun tells ranks apart
  // (RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR), and BATCHWRIGHT_PORT_FILE, where rank 0
  // writes the port that it serves.
  int processes = 1;
};

// A running worker, one process or one a rank, and its connections. Ends, with all its descendants, when the
// object does. When one of several processes fails, the worker has failed.
class Worker {
 public:
  struct Event {
    enum class Kind { Said, Garbage, Exited, Silent };
    Kind kind = Kind::Silent;
    Message message;    // Said
    std::string error;  // Garbage
  };

  // interrupt may be null. Throws what ChildProcess::start throws.
  Worker(const WorkerCommand& command, const InterruptGuard* interrupt);

  // What happens next within timeout_seconds; Silent when nothing does. A message that arrived before the
  // process ended is told before Exited. Throws Interrupted once a signal asked us to stop.
  Event next(double timeout_seconds);
  bool send(const Message& message);  // to rank 0; false when it is gone
  // next() no longer throws Interrupted: for work that was asked to stop and still has something to save.
  void ignore_interrupts() { interrupt_ = nullptr; }

  // Ends the process if need be and says why it is gone. Call once.
  Failure failure();
  // The rank of the process that failed, when there are several and one ended by itself with failure.
  std::optional<int> failed_rank() const { return failed_rank_; }
  std::int64_t peak_resident_bytes() const { return peak_resident_bytes_; }
  // Of all its processes together, as a memory limit counts it; nullopt without a control group.
  std::optional<std::int64_t> group_peak_bytes() const {
    return memory_group_ != nullptr ? memory_group_->peak_bytes() : std::nullopt;
  }
  // Asks it to stop, gives it this long, then ends it.
  void stop(double seconds);
  pid_t process_id() const { return processes_.front().process_id(); }

 private:
  void hung_up();
  bool ended();
  std::string printed() const;  // the end of what this worker printed

  std::filesystem::path log_file_;
  std::int64_t log_start_ = 0;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<MemoryGroup> memory_group_;  // outlives the process
  OomKillCounter oom_kills_;
  std::vector<ChildProcess> processes_;  // by rank
  const InterruptGuard* interrupt_;
  std::deque<Event> waiting_;
  int leader_ = -1;  // rank 0's connection
  std::int64_t peak_resident_bytes_ = 0;
  std::optional<int> failed_rank_;
};

}  // namespace batchwright::run
