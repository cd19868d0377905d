#pragma once

#include <string>

namespace batchwright::engine {

// Where this process stands among those that train together. Read from the environment variables that
// torchrun sets (RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT); without them it
// is alone.
struct World {
  int rank = 0, size = 1;
  bool launched = false;               // by torchrun or `batchwright --devices`, if only as one process
  int local_rank = 0, local_size = 1;  // among the processes of this machine
  std::string master_address;
  int master_port = 0;
  // Set by `batchwright --devices`: rank 0 takes any free port and writes its number there. A port chosen
  // before it is opened could be another's by then.
  std::string port_file;
  // torchrun's own process already serves the store, and rank 0 must not.
  bool agent_serves_store = false;

  bool together() const { return size > 1; }
  bool one_machine() const { return local_size == size; }
};

// Throws Usage naming the variable that is missing or out of range.
World world_from_environment();

}  // namespace batchwright::engine
