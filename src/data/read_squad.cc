#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/strict_json.h"
#include "data/json_place.h"
#include "data/questions.h"
#include "data/text_rows.h"

namespace batchwright::data {
namespace {

constexpr std::string_view kForm = "SQuAD's form is one document: data, paragraphs, qas, answers";

// The byte at which character number `characters` begins; npos when the text (valid UTF-8) has fewer.
std::size_t byte_of_character(std::string_view text, std::int64_t characters) {
  std::size_t at = 0;
  for (; characters > 0 && at < text.size(); --characters) {
    do ++at;
    while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80);
  }
  return characters == 0 ? at : std::string_view::npos;
}

// Reads the document top down, so that every fault knows the place it is at.
class SquadReader {
 public:
  SquadReader(std::string_view content, const std::string& subject) : content_(content), subject_(subject) {}

  QuestionSet read() {
    const Json document = parse();
    if (!document.is_object())
      fail(fmt::format("is {}, not SQuAD's object with \"data\"", document.type_name()));
    for_each(document, "data", [&](const Json& article) {
      for_each(article, "paragraphs", [&](const Json& paragraph) { read_paragraph(paragraph); });
    });
    if (result_.questions.empty()) fail("has no questions");
    return std::move(result_);
  }

 private:
  [[noreturn]] void fail(std::string message, std::string hint = "") const {
    throw Error(ErrorKind::InvalidInput, fmt::format("{}:{}", subject_, json_line(content_, path_)),
                std::move(message), std::move(hint));
  }

  // The parser knows the line of malformed text, but of a number that is too large only the number.
  Json parse() const {
    try {
      return parse_json_strictly(content_, subject_);
    } catch (const Error& e) {
      constexpr std::string_view kParsing = "parsing '";
      const std::string_view message = e.message();
      const std::size_t said = message.rfind(kParsing);
      if (said == std::string_view::npos)
        throw Error(ErrorKind::InvalidInput, e.subject(), e.message(), std::string(kForm));
      const std::string_view rest = message.substr(said + kParsing.size());
      const std::size_t at = std::min(content_.find(rest.substr(0, rest.find('\''))), content_.size());
      const auto line =
          1 + std::count(content_.begin(), content_.begin() + static_cast<std::ptrdiff_t>(at), '\n');
      throw Error(ErrorKind::InvalidInput, fmt::format("{}:{}", subject_, line), e.message());
    }
  }

  template <class Read>
  void for_each(const Json& object, const std::string& name, const Read& read) {
    const auto found = object.is_object() ? object.find(name) : object.end();
    if (found == object.end()) fail(fmt::format("has no \"{}\"", name), std::string(kForm));
    path_.emplace_back(name);
    if (!found->is_array()) fail(fmt::format("\"{}\" is {}, not a list", name, found->type_name()));
    for (std::size_t i = 0; i < found->size(); ++i) {
      path_.emplace_back(i);
      read((*found)[i]);
      path_.pop_back();
    }
    path_.pop_back();
  }

  std::size_t place_of(std::size_t step) const { return std::get<std::size_t>(path_[step]); }

  std::string text(const Json& object, const std::string& name) const {
    const auto found = object.is_object() ? object.find(name) : object.end();
    if (found == object.end()) fail(fmt::format("has no \"{}\"", name));
    if (!found->is_string()) fail(fmt::format("\"{}\" is {}, not text", name, found->type_name()));
    return found->get<std::string>();
  }

  void read_paragraph(const Json& paragraph) {
    result_.contexts.push_back(text(paragraph, "context"));
    for_each(paragraph, "qas", [&](const Json& question) { read_question(question); });
  }

  void read_question(const Json& object) {
    Question question{.id = text(object, "id"),
                      .text = text(object, "question"),
                      .context = result_.contexts.size() - 1,
                      .answers = {},
                      .place = {place_of(1), place_of(3), place_of(5)}};
    if (!ids_.insert(question.id).second)
      fail(fmt::format("has id '{}', which another question has", question.id));
    const auto impossible = object.find("is_impossible");
    if (impossible != object.end() && !impossible->is_boolean()) {
      fail(fmt::format("\"is_impossible\" is {}, neither true nor false", impossible->type_name()));
    }
    const bool has_none = impossible != object.end() && impossible->get<bool>();
    if (!has_none || object.contains("answers")) {
      for_each(object, "answers",
               [&](const Json& answer) { question.answers.push_back(read_answer(answer)); });
    }
    if (has_none && !question.answers.empty()) fail("\"is_impossible\" is true, and it has answers");
    if (!has_none && question.answers.empty()) {
      fail("has no answer", "A question that its context does not answer says \"is_impossible\": true");
    }
    result_.questions.push_back(std::move(question));
  }

  Answer read_answer(const Json& object) const {
    Answer answer{.text = text(object, "text")};
    const auto start = object.find("answer_start");
    if (start == object.end() || !start->is_number_integer()) fail("has no whole number \"answer_start\"");
    answer.start = start->is_number_unsigned() && start->get<std::uint64_t>() > content_.size()
                       ? static_cast<std::int64_t>(content_.size())
                       : start->get<std::int64_t>();
    const std::string& context = result_.contexts.back();
    const std::size_t at = answer.start < 0 ? std::string::npos : byte_of_character(context, answer.start);
    if (answer.text.empty() || at == std::string::npos ||
        std::string_view(context).substr(at, answer.text.size()) != answer.text) {
      fail(
          fmt::format("answer '{}' does not stand at character {} of its context", answer.text, answer.start),
          "\"answer_start\" counts characters from 0");
    }
    return answer;
  }

  std::string_view content_;
  const std::string& subject_;
  std::vector<JsonStep> path_;
  std::set<std::string> ids_;
  QuestionSet result_;
};

}  // namespace

QuestionSet parse_squad(std::string_view content, const std::string& subject) {
  return SquadReader(content, subject).read();
}

std::int64_t question_line(std::string_view content, const Question& question) {
  const auto [article, paragraph, number] = question.place;
  return json_line(content, {"data", article, "paragraphs", paragraph, "qas", number});
}

QuestionSet read_squad(const std::filesystem::path& path) {
  const std::string subject = path.string();
  const MappedFile file(path);
  return parse_squad(checked_content(file, subject), subject);
}

}  // namespace batchwright::data
