#include "engine/rendezvous.h"

#include <c10/util/Logging.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"

namespace batchwright::engine {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kPoll{50};

std::string to_text(const PeerIdentity& identity) {
  return dump_line(Json::array({identity.host, identity.process_space, identity.process_id}));
}

PeerIdentity identity_from(const std::string& text) {
  const Json list = parse_json(text, "rendezvous");
  return {.host = list.at(0).get<std::string>(),
          .process_space = list.at(1).get<std::string>(),
          .process_id = list.at(2).get<long>()};
}

std::string arrival_key(int rank) { return fmt::format("batchwright/here/{}", rank); }

[[noreturn]] void nobody_came(const std::string& who, std::chrono::seconds patience, const std::string& why) {
  throw Error(
      ErrorKind::Internal, who,
      fmt::format("did not arrive within {} s{}", patience.count(), why.empty() ? "" : " (" + why + ")"),
      "Every rank must be started, and must reach MASTER_ADDR and MASTER_PORT");
}

int port_from(const std::filesystem::path& file, std::chrono::seconds patience) {
  for (const auto start = Clock::now(); Clock::now() - start < patience; std::this_thread::sleep_for(kPoll)) {
    std::error_code error;
    if (std::filesystem::exists(file, error)) return std::atoi(read_file(file).c_str());
  }
  nobody_came("rank 0", patience, "it opened no port");
}

// torch reports every broken connection with a stack; our own message names the rank instead.
void silence_torch_warnings() {
  if (std::getenv("TORCH_CPP_LOG_LEVEL") == nullptr) FLAGS_caffe2_log_level = c10::GLOG_ERROR;
}

Store open_store(const World& world, std::chrono::seconds patience) {
  silence_torch_warnings();
  c10d::TCPStoreOptions options;
  options.isServer = world.rank == 0 && !world.agent_serves_store;
  options.waitWorkers = false;
  options.timeout = patience;
  options.port = static_cast<std::uint16_t>(world.master_port);
  if (!world.port_file.empty() && !options.isServer) {
    options.port = static_cast<std::uint16_t>(port_from(world.port_file, patience));
  }
  try {
    auto store = c10::make_intrusive<c10d::TCPStore>(world.master_address, options);
    if (!world.port_file.empty() && options.isServer) {
      write_file_atomic(world.port_file, std::to_string(store->getPort()));
    }
    return store;
  } catch (const Error&) {
    throw;
  } catch (const std::exception& e) {
    const std::string place = fmt::format("{}:{}", world.master_address, options.port);
    if (options.isServer) {
      throw Error(ErrorKind::Internal, place, "cannot be opened (" + first_line(e.what()) + ")",
                  "MASTER_ADDR is this machine's, and MASTER_PORT a free port");
    }
    nobody_came(fmt::format("rank 0 at {}", place), patience, first_line(e.what()));
  }
}

}  // namespace

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

PeerIdentity own_identity() {
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  std::error_code error;
  std::string space = std::filesystem::read_symlink("/proc/self/ns/pid", error).string();
  try {
    space += read_file("/proc/sys/kernel/random/boot_id", 64);
  } catch (const Error&) {  // without it, process numbers are compared within one namespace name only
  }
  return {.host = host, .process_space = space, .process_id = ::getpid()};
}

std::string PeerIdentity::name(int rank) const {
  return fmt::format("rank {} (process {} on host {})", rank, process_id, host);
}

bool PeerIdentity::is_gone() const {
  if (process_space != own_identity().process_space) return false;
  if (::kill(static_cast<pid_t>(process_id), 0) != 0) return errno == ESRCH;
  try {
    // A process that ended but was not yet waited for: its state is Z, after the name in parentheses.
    const std::string stat = read_file(fmt::format("/proc/{}/stat", process_id), 4096);
    const auto end = stat.rfind(')');
    return end != std::string::npos && end + 2 < stat.size() &&
           (stat[end + 2] == 'Z' || stat[end + 2] == 'X');
  } catch (const Error&) {
    return true;
  }
}

Rendezvous meet(const World& world, std::chrono::seconds patience) {
  const auto start = Clock::now();
  Rendezvous result{.store = open_store(world, patience), .peers = {}};
  std::vector<int> missing;  // by the last look at all of them
  for (int rank = 0; rank < world.size; ++rank) {
    if (rank != world.rank) missing.push_back(rank);
  }
  const auto names = [&] {
    return fmt::format("rank{} {}", missing.size() == 1 ? "" : "s", fmt::join(missing, ", "));
  };
  try {
    result.store->set(arrival_key(world.rank), to_text(own_identity()));
    do {
      std::erase_if(missing, [&](int rank) { return result.store->check({arrival_key(rank)}); });
      if (missing.empty()) break;
      std::this_thread::sleep_for(kPoll);
    } while (Clock::now() - start < patience);
    if (!missing.empty()) {
      nobody_came(names(), patience, "");
    }
    for (int rank = 0; rank < world.size; ++rank) {
      result.peers.push_back(identity_from(result.store->get_to_str(arrival_key(rank))));
    }
  } catch (const Error&) {
    throw;
  } catch (const std::exception& e) {
    throw Error(ErrorKind::Internal, "rank 0",
                missing.empty() ? fmt::format("ended its store at the start ({})", first_line(e.what()))
                                : fmt::format("ended its store before {} had arrived ({})", names(),
                                              first_line(e.what())));
  }
  return result;
}

}  // namespace batchwright::engine
