#include "run/listener.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "base/error.h"

namespace batchwright::run {
Listener::Listener() : path_(folder_.path() / "socket") {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path_.c_str(), sizeof address.sun_path - 1);
  descriptor_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (descriptor_ < 0 ||
      ::bind(descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(descriptor_, 64) != 0) {
    const std::string reason = std::strerror(errno);
    if (descriptor_ >= 0) ::close(descriptor_);
    throw Error(ErrorKind::Internal, path_.string(), "cannot listen (" + reason + ")");
  }
}

Listener::~Listener() {
  close_all();
  ::close(descriptor_);
}

void Listener::close_all() {
  for (const auto& [connection, buffer] : connections_) ::close(connection);
  connections_.clear();
}

void Listener::accept_waiting() {
  while (true) {
    const int connection = ::accept4(descriptor_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (connection >= 0) {
      connections_[connection];
    } else if (errno != EINTR) {
      return;
    }
  }
}

void Listener::read_from(int connection, std::vector<Event>& events) {
  LineBuffer& buffer = connections_[connection];
  char bytes[65536];
  const ssize_t got = ::recv(connection, bytes, sizeof bytes, 0);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  bool closed = got <= 0;
  try {
    if (!closed) buffer.append({bytes, static_cast<std::size_t>(got)});
    while (auto line = buffer.next_line()) {
      events.push_back({Event::Kind::Said, connection, parse_message(*line), ""});
    }
  } catch (const Error& e) {
    events.push_back({Event::Kind::Garbage, connection, Stop{}, e.message()});
    closed = true;
  }
  if (!closed) return;
  events.push_back({Event::Kind::Closed, connection, Stop{}, ""});
  ::close(connection);
  connections_.erase(connection);
}

std::vector<Listener::Event> Listener::wait(double timeout_seconds, std::span<const int> wake) {
  std::vector<pollfd> entries = {{descriptor_, POLLIN, 0}};
  for (const int descriptor : wake) entries.push_back({descriptor, POLLIN, 0});
  const std::size_t first_connection = entries.size();
  for (const auto& [connection, buffer] : connections_) entries.push_back({connection, POLLIN, 0});
  const int milliseconds = static_cast<int>(std::ceil(std::clamp(timeout_seconds, 0.0, 86400.0) * 1000));
  std::vector<Event> events;
  if (::poll(entries.data(), entries.size(), milliseconds) <= 0) return events;
  if (entries[0].revents != 0) accept_waiting();
  for (std::size_t i = first_connection; i < entries.size(); ++i) {
    if (entries[i].revents != 0) read_from(entries[i].fd, events);
  }
  return events;
}

bool Listener::send(int connection, const Message& message) {
  const std::string line = to_line(message) + "\n";
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t sent = ::send(connection, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      rest.remove_prefix(static_cast<std::size_t>(sent));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return false;
    // Our messages are short: a socket that stays full for a second belongs to a worker that does not read.
    pollfd entry{connection, POLLOUT, 0};
    if (::poll(&entry, 1, 1000) <= 0) return false;
  }
  return true;
}

}  // namespace batchwright::run
