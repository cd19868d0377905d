#include "model/architecture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace batchwright::model {
namespace {

// The first name of an architecture is the one it is printed by; later ones are read as the same family.
constexpr std::array<std::pair<std::string_view, Architecture>, 37> kNames = {{
    {"bert", Architecture::Bert},
    {"roberta", Architecture::Roberta},
    {"xlm-roberta", Architecture::Roberta},
    {"camembert", Architecture::Roberta},
    {"distilbert", Architecture::DistilBert},
    {"electra", Architecture::Electra},
    {"albert", Architecture::Albert},
    {"deberta-v2", Architecture::DebertaV2},
    {"modernbert", Architecture::ModernBert},
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
    {"qwen3_moe", Architecture::Qwen3Moe},
    {"gemma", Architecture::Gemma},
    {"gemma2", Architecture::Gemma2},
    {"gemma3_text", Architecture::Gemma3},
    {"gemma3", Architecture::Gemma3},
    {"granite", Architecture::Granite},
    {"olmo", Architecture::Olmo},
    {"olmo2", Architecture::Olmo2},
    {"starcoder2", Architecture::StarCoder2},
    {"baichuan", Architecture::Baichuan},
    {"chatglm", Architecture::ChatGlm},
}};

// Two stacks with cross-attention between them: another timeline than this project's.
constexpr std::array<std::string_view, 14> kEncoderDecoders = {
    "t5",      "mt5",    "umt5", "longt5",  "bart",       "mbart",      "pegasus",
    "whisper", "marian", "led",  "m2m_100", "blenderbot", "prophetnet", "switch_transformers"};

}  // namespace

Architecture parse_architecture(std::string_view model_type, const std::string& subject) {
  std::vector<std::string_view> known;
  for (const auto& [name, architecture] : kNames) {
    if (name == model_type) return architecture;
    known.push_back(name);
  }
  const std::string near = nearest_choice(model_type, known);
  const bool two_stacks =
      std::find(kEncoderDecoders.begin(), kEncoderDecoders.end(), model_type) != kEncoderDecoders.end();
  throw Error(ErrorKind::Unsupported, subject,
              fmt::format("model_type \"{}\" is {}", model_type.substr(0, 60),
                          two_stacks ? "an encoder with a decoder, which is not supported" : "not known"),
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
         architecture == Architecture::DistilBert || architecture == Architecture::Electra ||
         architecture == Architecture::Albert || architecture == Architecture::DebertaV2 ||
         architecture == Architecture::ModernBert;
}

}  // namespace batchwright::model
