#include "data/examples.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "data/documents.h"
#include "data/labels.h"
#include "data/questions.h"
#include "data/tagged_rows.h"
#include "data/text_rows.h"

namespace batchwright::data {
namespace {

// line_of for rows that know their lines.
template <class Rows>
std::function<std::int64_t(std::int64_t)> lines_of(const Rows& rows) {
  std::vector<std::int64_t> lines;
  for (const auto& row : rows) lines.push_back(row.line);
  return [lines = std::move(lines)](std::int64_t i) { return lines.at(static_cast<std::size_t>(i)); };
}

Examples texts(const PrepareRequest& request, const std::vector<std::string>& model_names) {
  const TextRows rows = read_text_rows(request.data, request.columns);
  LabelMap labels = map_labels(rows, model_names, request.data.string());
  Examples out{.lines = {},
               .count = std::ssize(rows.rows),
               .label_names = std::move(labels.names),
               .pairs = rows.has_pairs,
               .plain = false,
               .line_of = lines_of(rows.rows)};
  for (std::size_t i = 0; i < rows.rows.size(); ++i) {
    Json row = {{"text", rows.rows[i].text}, {"label", labels.class_of_rows[i]}};
    if (rows.has_pairs) row["text_pair"] = rows.rows[i].text_pair;
    out.lines += dump_line(row) + "\n";
  }
  return out;
}

Examples sentences(const PrepareRequest& request, const std::vector<std::string>& model_names) {
  const auto rows = read_conll(request.data);
  LabelMap labels = map_tags(rows, model_names, request.data.string());
  Examples out{.lines = {},
               .count = std::ssize(rows),
               .label_names = std::move(labels.names),
               .pairs = false,
               .plain = false,
               .line_of = lines_of(rows)};
  std::size_t at = 0;
  for (const TaggedRow& row : rows) {
    Json classes = Json::array();
    for (std::size_t i = 0; i < row.words.size(); ++i) classes.push_back(labels.class_of_rows[at++]);
    out.lines += dump_line({{"words", row.words}, {"labels", std::move(classes)}}) + "\n";
  }
  return out;
}

// One line a context, with its questions.
Examples questions(const PrepareRequest& request) {
  auto set = std::make_shared<const QuestionSet>(read_squad(request.data));
  Examples out{.lines = {},
               .count = std::ssize(set->questions),
               .label_names = {},
               .pairs = false,
               .plain = false,
               .line_of = [set, path = request.data](std::int64_t i) {
                 const MappedFile file(path);
                 return question_line(content_of(file), set->questions.at(static_cast<std::size_t>(i)));
               }};
  for (std::size_t i = 0; i < set->questions.size();) {
    const std::size_t context = set->questions[i].context;
    Json asked = Json::array();
    for (; i < set->questions.size() && set->questions[i].context == context; ++i) {
      const Question& question = set->questions[i];
      Json answers = Json::array();
      for (const Answer& answer : question.answers)
        answers.push_back({{"text", answer.text}, {"start", answer.start}});
      asked.push_back({{"id", question.id}, {"question", question.text}, {"answers", std::move(answers)}});
    }
    out.lines += dump_line({{"context", set->contexts[context]}, {"questions", std::move(asked)}}) + "\n";
  }
  return out;
}

Examples documents(const PrepareRequest& request) {
  const Documents read = read_documents(request.data, request.columns);
  Examples out{.lines = {},
               .count = std::ssize(read.rows),
               .label_names = {},
               .pairs = false,
               .plain = read.plain,
               .line_of = lines_of(read.rows)};
  for (const Document& row : read.rows) {
    Json line = {{"text", row.text}};
    if (row.has_prompt) line["prompt"] = row.prompt;
    out.lines += dump_line(line) + "\n";
  }
  return out;
}

}  // namespace

Examples read_examples(const PrepareRequest& request, Task task,
                       const std::vector<std::string>& model_names) {
  switch (task) {
    case Task::SequenceClassification:
      return texts(request, model_names);
    case Task::TokenClassification:
      return sentences(request, model_names);
    case Task::QuestionAnswering:
      return questions(request);
    case Task::CausalLm:
      return documents(request);
  }
  throw Error(ErrorKind::Internal, "task", "is none that is known");
}

}  // namespace batchwright::data
