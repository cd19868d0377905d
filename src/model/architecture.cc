#include "model/architecture.h"

#include <fmt/format.h>

#include <array>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace batchwright::model {
namespace {

// The first name of an architecture is the one it is printed by; later ones are read as the same family.
constexpr std::array<std::pair<std::string_view, Architecture>, 29> kNames = {{
    {"bert", Architecture::Bert},
    {"roberta", Architecture::Roberta},
    {"xlm-roberta", Architecture::Roberta},
    {"camembert", Architecture::Roberta},
    {"distilbert", Architecture::DistilBert},
    {"electra", Architecture::Electra},
    {"gpt2", Architecture::Gpt2},
    {"gpt_bigcode", Architecture::GptBigCode},
    {"gpt_neox", Architecture::GptNeoX},
    {"opt", Architecture::Opt},
    {"bloom", Architecture::Bloom},
    {"mpt", Architecture::Mpt},
    {"falcon", Architecture::Falcon},
    {"phi", Architecture::Phi},
    {"phi3", Architecture::Phi3},
    {"stablelm", Architecture::StableLm},
    {"llama", Architecture::Llama},
    {"smollm3", Architecture::Llama},
    {"mistral", Architecture::Mistral},
    {"mixtral", Architecture::Mixtral},
    {"qwen", Architecture::Qwen},
    {"qwen2", Architecture::Qwen2},
    {"qwen3", Architecture::Qwen3},
    {"gemma", Architecture::Gemma},
    {"gemma2", Architecture::Gemma2},
    {"granite", Architecture::Granite},
    {"olmo", Architecture::Olmo},
    {"baichuan", Architecture::Baichuan},
    {"chatglm", Architecture::ChatGlm},
}};

}  // namespace

Architecture parse_architecture(std::string_view model_type, const std::string& subject) {
  std::vector<std::string_view> known;
  for (const auto& [name, architecture] : kNames) {
    if (name == model_type) return architecture;
    known.push_back(name);
  }
  const std::string near = nearest_choice(model_type, known);
  throw Error(ErrorKind::Unsupported, subject,
              fmt::format("model_type \"{}\" is not known", model_type.substr(0, 60)),
              fmt::format("{}Known are {}", near.empty() ? "" : fmt::format("Did you mean \"{}\"? ", near),
                          fmt::join(known, ", ")));
}

std::string_view architecture_name(Architecture architecture) {
  for (const auto& [name, value] : kNames) {
    if (value == architecture) return name;
  }
  return "unknown";
}

bool is_encoder(Architecture architecture) {
  return architecture == Architecture::Bert || architecture == Architecture::Roberta ||
         architecture == Architecture::DistilBert || architecture == Architecture::Electra;
}

}  // namespace batchwright::model
