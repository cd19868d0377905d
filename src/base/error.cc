#include "base/error.h"

#include <utility>

namespace batchwright {

Error::Error(ErrorKind kind, std::string subject, std::string message, std::string hint)
    : kind_(kind), subject_(std::move(subject)), message_(std::move(message)), hint_(std::move(hint)) {
  what_ = subject_.empty() ? message_ : subject_ + ": " + message_;
  if (!hint_.empty()) what_ += ". " + hint_;
}

int exit_code(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::No:
    case ErrorKind::OutOfMemory:
      return 1;
    case ErrorKind::Usage:
    case ErrorKind::InvalidInput:
    case ErrorKind::NotFound:
    case ErrorKind::Unsupported:
      return 2;
    case ErrorKind::Interrupted:
      return 130;
    case ErrorKind::Internal:
      return 70;
  }
  return 70;
}

std::string_view error_kind_name(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::Usage:
      return "usage";
    case ErrorKind::InvalidInput:
      return "invalid_input";
    case ErrorKind::NotFound:
      return "not_found";
    case ErrorKind::Unsupported:
      return "unsupported";
    case ErrorKind::No:
      return "no";
    case ErrorKind::OutOfMemory:
      return "out_of_memory";
    case ErrorKind::Interrupted:
      return "interrupted";
    case ErrorKind::Internal:
      return "internal";
  }
  return "internal";
}

}  // namespace batchwright
