#include "run/channel.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/units.h"

namespace batchwright::run {
namespace {

constexpr const char* kVariable = "BATCHWRIGHT_SOCKET";

// A message in words; empty when it is for programs only.
std::string in_words(const Message& message) {
  if (const auto* step = std::get_if<StepReport>(&message)) {
    return fmt::format("step {}, loss {:.4f}, {}", step->step, step->loss.value_or(0),
                       format_seconds(step->seconds));
  }
  const auto* note = std::get_if<Note>(&message);
  return note != nullptr ? note->text : "";
}

}  // namespace

bool WorkerChannel::named_in_environment() {
  const char* path = std::getenv(kVariable);
  return path != nullptr && *path != '\0';
}

WorkerChannel WorkerChannel::printing_to(std::FILE* file) {
  WorkerChannel channel(-1);
  channel.text_ = file;
  channel.connected_ = false;
  return channel;
}

WorkerChannel WorkerChannel::from_environment() {
  const char* path = std::getenv(kVariable);
  if (path == nullptr || *path == '\0') {
    throw Error(ErrorKind::Usage, kVariable, "is not set",
                "Workers are started by `batchwright tune` and `batchwright train`");
  }
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (std::strlen(path) >= sizeof address.sun_path) {
    throw Error(ErrorKind::Usage, kVariable, "is longer than a socket's path may be");
  }
  std::strcpy(address.sun_path, path);
  const int descriptor = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) throw Error(ErrorKind::Internal, path, std::strerror(errno));
  if (::connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    const std::string reason = std::strerror(errno);
    ::close(descriptor);
    throw Error(ErrorKind::Usage, path, "nobody listens there (" + reason + ")");
  }
  return WorkerChannel(descriptor);
}

WorkerChannel::~WorkerChannel() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

WorkerChannel::WorkerChannel(WorkerChannel&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      text_(other.text_),
      connected_(other.connected_),
      sending_(std::move(other.sending_)),
      buffer_(std::move(other.buffer_)),
      waiting_(std::move(other.waiting_)),
      closed_(other.closed_) {}

void WorkerChannel::send(const Message& message) {
  const std::lock_guard lock(*sending_);
  if (!connected_) {
    const std::string words = in_words(message);
    if (text_ != nullptr && !words.empty()) fmt::print(text_, "{}\n", words);
    return;
  }
  const std::string line = to_line(message) + "\n";
  std::string_view rest = line;
  while (!rest.empty()) {
    // MSG_NOSIGNAL: a tuner that is gone is an error to report, not a signal that kills the worker.
    const ssize_t sent = ::send(descriptor_, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) {
      throw Error(ErrorKind::Interrupted, "protocol",
                  std::string("the tuner is gone (") + std::strerror(errno) + ")");
    }
    rest.remove_prefix(static_cast<std::size_t>(sent));
  }
}

void WorkerChannel::read_more(bool block) {
  char bytes[4096];
  while (true) {
    const ssize_t got = ::recv(descriptor_, bytes, sizeof bytes, block ? 0 : MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (got <= 0) {
      closed_ = true;
      return;
    }
    buffer_.append({bytes, static_cast<std::size_t>(got)});
    return;
  }
}

void WorkerChannel::take_lines() {
  while (auto line = buffer_.next_line()) waiting_.push_back(parse_message(*line));
}

Message WorkerChannel::receive() {
  if (!connected_) return Stop{};
  take_lines();
  while (waiting_.empty()) {
    if (closed_) return Stop{};
    read_more(true);
    take_lines();
  }
  Message message = std::move(waiting_.front());
  waiting_.pop_front();
  return message;
}

bool WorkerChannel::stop_requested() {
  if (!connected_) return false;
  pollfd poll_entry{descriptor_, POLLIN, 0};
  while (!closed_ && ::poll(&poll_entry, 1, 0) > 0) read_more(false);
  take_lines();
  if (closed_) return true;
  for (const Message& message : waiting_) {
    if (std::holds_alternative<Stop>(message)) return true;
  }
  return false;
}

}  // namespace batchwright::run
