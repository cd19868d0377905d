#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "run/line_buffer.h"
#include "run/private_folder.h"
#include "run/protocol.h"

namespace batchwright::run {

// The tuner's end of the protocol: a Unix-domain socket in a private folder, and the connections of the
// workers (one a rank) that found it through BATCHWRIGHT_SOCKET.
class Listener {
 public:
  struct Event {
    enum class Kind { Said, Garbage, Closed };
    Kind kind = Kind::Said;
    int connection = 0;
    Message message;    // Said
    std::string error;  // Garbage: what is wrong with the line
  };

  Listener();   // throws Internal with the system's reason
  ~Listener();  // closes everything and removes the folder
  Listener(const Listener&) = delete;

  const std::filesystem::path& socket_path() const { return path_; }
  // Waits at most timeout_seconds for messages or for one of the `wake` descriptors to become readable.
  // Returns what arrived, in order; empty when the time ran out or only a wake descriptor is ready.
  std::vector<Event> wait(double timeout_seconds, std::span<const int> wake);
  // False when the worker is gone or does not read what it is sent.
  bool send(int connection, const Message& message);
  void close_all();

 private:
  void accept_waiting();
  void read_from(int connection, std::vector<Event>& events);

  PrivateFolder folder_;
  std::filesystem::path path_;
  int descriptor_ = -1;
  std::map<int, LineBuffer> connections_;
};

}  // namespace batchwright::run
