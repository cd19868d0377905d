#pragma once

#include <deque>
#include <string>

#include "run/line_buffer.h"
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
  void read_more(bool block);
  void take_lines();

  int descriptor_;
  LineBuffer buffer_;
  std::deque<Message> waiting_;  // received, not yet asked for
  bool closed_ = false;
};

}  // namespace batchwright::run
