#include "check/config_tree.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <sstream>

#include "base/error.h"

namespace batchwright::check {
namespace {

constexpr int kMaxDepth = 64;
constexpr int kMaxNodes = 100'000;

[[noreturn]] void fail(const std::string& subject, int line, const std::string& message) {
  throw Error(ErrorKind::InvalidInput, line > 0 ? fmt::format("{}:{}", subject, line) : subject, message);
}

// Reads through all documents and keeps nothing. yaml-cpp takes what it cannot place between documents
// ("{...},") for one more empty document, again and again at the same place, until memory ends: LoadAll must
// not see that.
class StuckDocument final : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& mark) override {
    if (mark.pos <= last_) throw YAML::ParserException(mark, "text that belongs to no document");
    last_ = mark.pos;
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
  }
  void OnMapEnd() override {}

 private:
  int last_ = -1;
};

void reject_stuck_document(const std::string& source) {
  std::istringstream stream(source);
  YAML::Parser parser(stream);
  StuckDocument stuck;
  while (parser.HandleNextDocument(stuck)) {
  }
}

// Copies yaml-cpp's graph into a tree. Aliases are expanded, so the number of nodes is what bounds an alias
// bomb.
class TreeBuilder {
 public:
  explicit TreeBuilder(const std::string& subject) : subject_(subject) {}

  ConfigNode build(const YAML::Node& node, int depth) {
    ConfigNode result;
    result.line = node.Mark().line >= 0 ? node.Mark().line + 1 : 0;
    if (depth > kMaxDepth) fail(subject_, result.line, fmt::format("nests deeper than {} levels", kMaxDepth));
    if (++count_ > kMaxNodes) fail(subject_, result.line, "expands to too many values");
    if (node.IsScalar()) {
      result.kind = ConfigNode::Kind::Scalar;
      result.text = node.Scalar();
      result.quoted = node.Tag() == "!";  // yaml-cpp's tag of a scalar in quotes
      const bool null_word = !result.quoted && (result.text == "null" || result.text == "None");
      if (null_word) result.kind = ConfigNode::Kind::Null;
    } else if (node.IsSequence()) {
      result.kind = ConfigNode::Kind::List;
      for (const YAML::Node& item : node) result.list.push_back(build(item, depth + 1));
    } else if (node.IsMap()) {
      result.kind = ConfigNode::Kind::Map;
      for (const auto& entry : node) {
        std::string key = entry.first.IsScalar() ? entry.first.Scalar() : std::string("?");
        ConfigNode value = build(entry.second, depth + 1);
        // A value's own mark can be the line after its key (block maps); a key's line is where people look.
        if (entry.first.Mark().line >= 0) value.line = entry.first.Mark().line + 1;
        result.map.emplace_back(std::move(key), std::move(value));
      }
    }
    return result;
  }

 private:
  const std::string& subject_;
  int count_ = 0;
};

// Comments of JSON written for people ("//" to the end of the line) become spaces; strings are left alone.
std::string without_slash_comments(std::string_view text) {
  std::string result(text);
  bool in_string = false;
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (in_string) {
      if (result[i] == '\\')
        ++i;
      else if (result[i] == '"' || result[i] == '\n')
        in_string = false;
    } else if (result[i] == '"') {
      in_string = true;
    } else if (result[i] == '/' && i + 1 < result.size() && result[i + 1] == '/') {
      while (i < result.size() && result[i] != '\n') result[i++] = ' ';
    }
  }
  return result;
}

// yaml-cpp recurses once a level while scanning, before a tree exists: brackets are counted beforehand, and
// so is indentation with its dashes.
void reject_deep_nesting(std::string_view text, const std::string& subject) {
  int depth = 0, line = 1, opened_in_line = 0;
  bool line_start = true;
  for (const char c : text) {
    if (c == '\n') {
      ++line, line_start = true, opened_in_line = 0;
      continue;
    }
    if (c == '[' || c == '{') ++depth;
    if ((c == ']' || c == '}') && depth > 0) --depth;
    if (line_start && (c == '-' || c == '?')) ++opened_in_line;
    if (c != ' ' && c != '-' && c != '?' && c != '\t') line_start = false;
    if (depth > 4 * kMaxDepth || opened_in_line > 4 * kMaxDepth) {
      fail(subject, line, fmt::format("nests deeper than {} levels", kMaxDepth));
    }
  }
}

}  // namespace

std::string normal_key(std::string_view key) {
  std::string result;
  for (const char c : key) {
    result += c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return result;
}

std::optional<double> parse_number(std::string_view text) {
  std::string digits;
  for (const char c : text) {
    if (c == '_' || c == ',') continue;
    digits += c;
  }
  double scale = 1;
  if (!digits.empty() && (digits.back() == 'k' || digits.back() == 'K'))
    scale = 1e3, digits.pop_back();
  else if (!digits.empty() && digits.back() == 'M')
    scale = 1e6, digits.pop_back();
  if (digits.empty() || digits.size() > 40) return std::nullopt;
  const unsigned char first = static_cast<unsigned char>(digits[0]);
  if (!std::isdigit(first) && first != '-' && first != '+' && first != '.') return std::nullopt;
  if (digits.find_first_of("xXpP") != std::string::npos) return std::nullopt;  // no hexadecimal
  char* end = nullptr;
  const double value = std::strtod(digits.c_str(), &end);
  if (end != digits.c_str() + digits.size() || !std::isfinite(value)) return std::nullopt;
  return value * scale;
}

const ConfigNode* ConfigNode::find(std::string_view key) const {
  const std::string wanted = normal_key(key);
  for (const auto& [name, value] : map) {
    if (name.size() == wanted.size() && normal_key(name) == wanted) return &value;
  }
  return nullptr;
}

std::optional<double> ConfigNode::number() const {
  return kind == Kind::Scalar ? parse_number(text) : std::nullopt;
}

bool ConfigNode::is_true() const {
  if (kind != Kind::Scalar) return false;
  const std::string word = normal_key(text);
  return word == "true" || word == "yes" || word == "on" || word == "1";
}

ConfigNode parse_config_tree(std::string_view text, const std::string& subject) {
  reject_deep_nesting(text, subject);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const bool json_like = first != std::string_view::npos && (text[first] == '{' || text[first] == '[');
  try {
    const std::string source = json_like ? without_slash_comments(text) : std::string(text);
    reject_stuck_document(source);
    const std::vector<YAML::Node> documents = YAML::LoadAll(source);
    TreeBuilder builder(subject);
    if (documents.size() == 1) return builder.build(documents[0], 0);
    ConfigNode all;
    all.kind = ConfigNode::Kind::List;
    for (const YAML::Node& document : documents) all.list.push_back(builder.build(document, 1));
    return all;
  } catch (const YAML::Exception& e) {
    fail(subject, e.mark.line + 1, fmt::format("is not valid {} ({})", json_like ? "JSON" : "YAML", e.msg));
  } catch (const Error&) {
    throw;
  } catch (const std::exception& e) {
    fail(subject, 0, fmt::format("cannot be read as YAML or JSON ({})", e.what()));
  }
}

}  // namespace batchwright::check
