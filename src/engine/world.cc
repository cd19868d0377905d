#include "engine/world.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <cstring>

#include "base/error.h"

namespace batchwright::engine {
namespace {

std::string text_of(const char* variable) {
  const char* value = std::getenv(variable);
  return value == nullptr ? "" : value;
}

int number_in(const char* variable, int least, int most) {
  const std::string text = text_of(variable);
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most) {
    throw Error(
        ErrorKind::Usage, variable,
        text.empty() ? "is not set" : fmt::format("is '{}', and must be from {} to {}", text, least, most),
        "torchrun sets RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT");
  }
  return value;
}

}  // namespace

World world_from_environment() {
  World world;
  if (text_of("WORLD_SIZE").empty() && text_of("RANK").empty()) return world;
  world.launched = true;
  world.size = number_in("WORLD_SIZE", 1, 1 << 16);
  world.rank = number_in("RANK", 0, world.size - 1);
  // Launchers other than torchrun leave these out; then every process counts as alone on its machine.
  world.local_size = text_of("LOCAL_WORLD_SIZE").empty() ? 1 : number_in("LOCAL_WORLD_SIZE", 1, world.size);
  world.local_rank = text_of("LOCAL_RANK").empty() ? 0 : number_in("LOCAL_RANK", 0, world.size - 1);
  world.port_file = text_of("BATCHWRIGHT_PORT_FILE");
  world.agent_serves_store = text_of("TORCHELASTIC_USE_AGENT_STORE") == "True";
  if (!world.together()) return world;
  world.master_address = text_of("MASTER_ADDR");
  if (world.master_address.empty())
    throw Error(ErrorKind::Usage, "MASTER_ADDR", "is not set", "torchrun sets it");
  if (world.port_file.empty()) world.master_port = number_in("MASTER_PORT", 1, 65535);
  return world;
}

}  // namespace batchwright::engine
