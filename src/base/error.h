#pragma once

#include <exception>
#include <string>
#include <string_view>

namespace batchwright {

// What kind of trouble: decides the exit code (see exit_code) and nothing else.
enum class ErrorKind {
  Usage,         // the command line or an option is wrong
  InvalidInput,  // a file or a message from outside is malformed
  NotFound,      // a file or folder is not there
  Unsupported,   // valid, but outside what this version does
  No,            // the honest answer is no: nothing fits, a mistake was found
  OutOfMemory,   // a memory limit was reached
  Interrupted,   // Ctrl-C or SIGTERM
  Internal,      // a fault of ours
};

// The one error type. `subject` names the file, field or option; `hint` says what to do next and may be
// empty. Thrown by value; printing and exiting happen in cli only.
class Error : public std::exception {
 public:
  Error(ErrorKind kind, std::string subject, std::string message, std::string hint = "");

  ErrorKind kind() const { return kind_; }
  const std::string& subject() const { return subject_; }
  const std::string& message() const { return message_; }
  const std::string& hint() const { return hint_; }
  // "subject: message", and ". hint" when there is one: a single line.
  const char* what() const noexcept override { return what_.c_str(); }

 private:
  ErrorKind kind_;
  std::string subject_, message_, hint_, what_;
};

// 0 is never returned: 1 for No and OutOfMemory, 2 for what the user can mend, 130 interrupted, 70 internal.
int exit_code(ErrorKind kind);

// "usage", "invalid_input", ...: the name used in JSON output.
std::string_view error_kind_name(ErrorKind kind);

}  // namespace batchwright
