#pragma once

#include <string>
#include <string_view>

namespace batchwright::model {

// The families whose shape this project knows, by Hugging Face's `model_type`. What can be *planned* is all
// of them; what the engine can train is the engine's to say.
enum class Architecture {
  Bert,
  Roberta,  // also xlm-roberta and camembert: the same modules under the name "roberta"
  DistilBert,
  Electra,
  Albert,
  DebertaV2,  // also DeBERTa-v3
  ModernBert,
  Gpt2,
  GptBigCode,
  GptNeoX,
  Opt,
  Bloom,
  Mpt,
  Falcon,
  Phi,
  Phi3,
  StableLm,
  Llama,  // also Yi, Vicuna, TinyLlama, SmolLM, CodeLlama and other relabelled Llamas
  Mistral,
  Mixtral,
  Qwen,  // the first Qwen, `model_type` "qwen"
  Qwen2,
  Qwen3,
  Qwen3Moe,
  Gemma,
  Gemma2,
  Gemma3,  // the text model; of a config with a vision tower, its text_config
  Granite,
  Olmo,
  Olmo2,
  StarCoder2,
  Baichuan,
  ChatGlm,
};

// From config.json's `model_type`. Throws Unsupported with `subject`, naming the nearest and all known types.
Architecture parse_architecture(std::string_view model_type, const std::string& subject);

std::string_view architecture_name(Architecture architecture);  // "bert", "llama", ...

// True for encoders that see the whole sequence at once (no causal mask).
bool is_encoder(Architecture architecture);

}  // namespace batchwright::model
