#pragma once

#include <cstdio>
#include <deque>
#include <memory>
#include <mutex>
#include <string>

#include "run/line_buffer.h"
#include "run/protocol.h"

namespace batchwright::run {

// The worker's end of the protocol: connects to the socket named in BATCHWRIGHT_SOCKET. Any thread may send.
class WorkerChannel {
 public:
  // Throws Usage when the variable is not set or nobody listens there.
  static WorkerChannel from_environment();
  // Nobody listens and nobody gives orders: steps and notes are printed for people; nullptr: not even that.
  // For a worker that torchrun started.
  static WorkerChannel printing_to(std::FILE* file);
  static bool named_in_environment();
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
  std::FILE* text_ = nullptr;
  bool connected_ = true;
  std::unique_ptr<std::mutex> sending_ = std::make_unique<std::mutex>();
  LineBuffer buffer_;
  std::deque<Message> waiting_;  // received, not yet asked for
  bool closed_ = false;
};

}  // namespace batchwright::run
