#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace batchwright {

struct ProcessOptions {
  std::vector<std::string> command;  // [0] is looked up in PATH when it has no slash
  std::map<std::string, std::optional<std::string>> environment;  // changes to ours; nullopt removes
  std::filesystem::path working_folder;                           // empty: ours
  std::filesystem::path output_file;      // standard output and error, appended; empty: /dev/null
  std::int64_t address_space_bytes = 0;   // RLIMIT_AS of the child; 0: ours
  std::chrono::milliseconds grace{2000};  // between SIGTERM and SIGKILL when it is ended
};

// How a process ended. Standard input is always /dev/null and there is no terminal: a child that asks a
// question fails instead of waiting for ever.
struct ExitStatus {
  std::optional<int> code;               // exit code, when it exited
  std::optional<int> signal;             // when a signal ended it
  std::int64_t peak_resident_bytes = 0;  // of the process itself (ru_maxrss); 0: not known

  bool succeeded() const { return code == 0; }
};

bool has_ended(pid_t process);                    // no process has this number
std::string signal_name(int signal);              // "SIGKILL"; "signal 77" when it has no name
std::string to_string(const ExitStatus& status);  // "exited with code 3", "was ended by SIGSEGV"

// A child process together with every process that descends from it, also those that moved to other sessions
// and process groups.
//
// A small supervisor process stands between us and the command. It is a child subreaper (prctl(2)), so
// whatever the command leaves behind becomes the supervisor's child; "no children left" is then exactly
// "nothing left running". It ends everything when the command exits, when end() asks, and when we die, even
// by SIGKILL.
class ChildProcess {
 public:
  // Throws NotFound when the command cannot be executed, Internal when the system refuses a process.
  static ChildProcess start(const ProcessOptions& options);
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ChildProcess(const ChildProcess&) = delete;
  ~ChildProcess();  // end()

  pid_t process_id() const { return command_id_; }
  // Readable (end of file or data) once the command and everything it started is gone: for poll(2).
  int exit_descriptor() const { return status_descriptor_; }
  bool running();
  // Waits until the command and its descendants are gone. nullopt when the time ran out.
  std::optional<ExitStatus> wait(std::chrono::milliseconds timeout);
  // SIGTERM to every descendant, SIGKILL to what is left after the grace time; returns when none is left.
  ExitStatus end();

 private:
  ChildProcess(pid_t supervisor, int status_descriptor)
      : supervisor_(supervisor), status_descriptor_(status_descriptor) {}
  void collect();

  pid_t supervisor_ = -1, command_id_ = -1;
  int status_descriptor_ = -1;
  std::optional<ExitStatus> status_;
};

// Runs to the end and returns what it wrote (standard output and error together, the last `most_bytes`).
struct CapturedOutput {
  ExitStatus status;
  std::string text;
  bool timed_out = false;
};
CapturedOutput run_captured(ProcessOptions options, std::chrono::milliseconds timeout,
                            std::int64_t most_bytes = 1 << 20);

// Gives a program that was started with standard input, output or error closed (>&-) something in their
// place: the next file it opened would get that number, and be written into. Writing to a closed output still
// fails.
void hold_standard_descriptors();

// The file that this process runs; empty when the system does not say.
std::filesystem::path running_program();

// The last line of `text` that is not blank, at most `most` bytes of it.
std::string last_line(std::string_view text, std::size_t most = 300);

}  // namespace batchwright
