#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "run/protocol.h"

namespace batchwright::run {

// The worker's end of the protocol: connects to the socket named in BATCHWRIGHT_SOCKET.
class WorkerChannel {
 public:
  // Throws Usage when the variable is not set or nobody listens there.
  static WorkerChannel from_environment();
  explicit WorkerChannel(int descriptor) : descriptor_(descriptor) {}
  ~WorkerChannel();
  WorkerChannel(WorkerChannel&& other) noexcept;
  WorkerChannel(const WorkerChannel&) = delete;

  void send(const Message& message);  // blocks until written; throws Interrupted when the tuner is gone
  Message receive();                  // blocks; Stop when the tuner closed the connection
  bool stop_requested();              // true once Stop or end-of-stream is waiting; does not block

 private:
  int descriptor_;
  std::string buffer_;
};

}  // namespace batchwright::run
