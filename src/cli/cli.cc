#include "cli/cli.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <system_error>

#include "base/error.h"
#include "base/json.h"
#include "cli/doc_pages.h"
#include "cli/verbs.h"

namespace batchwright::cli {

// Each is defined in src/cli/verb_<name>.cc.
void add_calibrate_verb(CLI::App& app, int& exit_code);
void add_plan_verb(CLI::App& app, int& exit_code);
void add_tune_verb(CLI::App& app, int& exit_code);
void add_train_verb(CLI::App& app, int& exit_code);
void add_verify_verb(CLI::App& app, int& exit_code);
void add_explain_verb(CLI::App& app, int& exit_code);
void add_check_verb(CLI::App& app, int& exit_code);

const std::vector<Verb>& verbs() {
  static const std::vector<Verb> all = {
      {"plan", "predict every split's memory and time, before anything runs", add_plan_verb},
      {"calibrate", "measure this machine for plan", add_calibrate_verb},
      {"tune", "measure which split is fastest on this device", add_tune_verb},
      {"train", "fine-tune with a split", add_train_verb},
      {"verify", "prove that every split gives the same gradient", add_verify_verb},
      {"explain", "say where a run's step time goes", add_explain_verb},
      {"check", "find accumulation mistakes in code, configurations and logs", add_check_verb},
  };
  return all;
}

Error unknown_option(const CLI::App& app, const std::string& word, const std::string& otherwise) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  const std::string near = nearest_choice(word.substr(0, word.find('=')), {names.begin(), names.end()});
  return Error(ErrorKind::Usage, word, "is not an option of this verb",
               near.empty() ? otherwise : fmt::format("Did you mean {}?", near));
}

namespace {

std::string overview() {
  std::string text =
      "batchwright: find the micro-batch x accumulation split of your effective batch that trains soonest\n\n"
      "usage: batchwright VERB ... [--json]\n\n";
  for (const Verb& verb : verbs()) text += fmt::format("  {:10} {}\n", verb.name, verb.summary);
  return text +
         "\n`batchwright VERB --help` prints the verb's page. `batchwright --version` prints the version.\n";
}

// The words that follow a verb decide whether errors are printed as JSON: the caller may have failed before
// parsing.
bool wants_json(int argc, char** argv) {
  for (int i = 1; i < argc && std::string_view(argv[i]) != "--"; ++i) {
    const std::string_view word = argv[i];
    if (word == "--json" || word == "--json=true" || word == "--json=1") return true;
  }
  return false;
}

void print_error(const Error& error, bool as_json) {
  fmt::print(stderr, "batchwright: {}\n", error.what());
  if (!as_json) return;
  const Json document = {{"version", 1},
                         {"error",
                          {{"kind", error_kind_name(error.kind())},
                           {"subject", error.subject()},
                           {"message", error.message()},
                           {"hint", error.hint()}}}};
  fmt::print("{}\n", dump_line(document));
}

// "--run=", "--learning-rate ''" and "--run --quiet" are slips (an unset variable, a forgotten value): taken
// literally they would mean a rate of 0 and name a folder "--quiet".
void require_values(const CLI::App& app, const std::string& verb, int argc, char** argv) {
  for (int i = 2; i < argc && std::string_view(argv[i]) != "--"; ++i) {
    const std::string word = argv[i];
    if (!word.starts_with("--")) continue;
    const auto equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const CLI::Option* option = app.get_option_no_throw(name);
    if (option == nullptr || option->get_expected_min() == 0) continue;
    const bool apart = equals == std::string::npos && i + 1 < argc;  // from its value
    const std::string_view value = apart ? argv[i + 1] : std::string_view(word).substr(equals + 1);
    if (value.empty() || (apart && value.starts_with("--"))) {
      throw Error(ErrorKind::Usage, name, "needs a value",
                  apart && value.size() > 2 ? fmt::format("Write {}={} if that is the value", name, value)
                                            : fmt::format("`batchwright {} --help` lists the options", verb));
    }
  }
}

// What was printed may still be in a buffer, and the disk full or the reader gone.
void flush_output() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    throw Error(ErrorKind::InvalidInput, "standard output",
                fmt::format("cannot be written ({})", std::strerror(errno)));
  }
}

std::string after(const std::string& text, std::string_view mark) {
  const auto at = text.find(mark);
  return at == std::string::npos ? "" : text.substr(at + mark.size());
}

// CLI11 says "Could not convert: --seed = x" and "The following argument was not expected: --sed".
Error usage_error(const CLI::App& app, const Verb& verb, const CLI::ParseError& failure) {
  const std::string text = failure.what();
  const std::string help = fmt::format("`batchwright {} --help` lists the options", verb.name);
  if (const std::string rest = after(text, "Could not convert: "); !rest.empty()) {
    const std::string value = after(rest, " = ");
    return Error(ErrorKind::Usage, rest.substr(0, rest.find(" = ")),
                 fmt::format("'{}' is not a number that it can take", value), help);
  }
  if (std::string word = after(text, "not expected: "); !word.empty()) {
    // The parser lists the values of an unknown option beside it: the option is what went wrong.
    if (const auto option = word.find("--"); option != std::string::npos) word.erase(0, option);
    word = word.substr(0, word.find(' '));
    if (!word.starts_with("-")) {
      return Error(ErrorKind::Usage, word,
                   fmt::format("is one word too many for `batchwright {}`", verb.name), help);
    }
    return unknown_option(app, word, help);
  }
  return Error(ErrorKind::Usage, fmt::format("batchwright {}", verb.name), text, help);
}

// The parser takes the nearest integer for one that 64 bits cannot hold.
void refuse_endless_integers(CLI::App& app, const std::string& verb) {
  for (CLI::Option* option : app.get_options([](const CLI::Option* o) {
         return o->get_type_name().starts_with("INT") || o->get_type_name().starts_with("UINT");
       })) {
    option->check([name = option->get_name(), verb](const std::string& word) {
      std::int64_t value = 0;
      const auto read = std::from_chars(word.data(), word.data() + word.size(), value);
      if (read.ec == std::errc::result_out_of_range) {
        throw Error(ErrorKind::Usage, name, fmt::format("'{}' is not a number that it can take", word),
                    fmt::format("`batchwright {} --help` lists the options", verb));
      }
      return std::string();
    });
  }
}

int run_verb(const Verb& verb, int argc, char** argv) {
  CLI::App app{std::string(verb.summary), fmt::format("batchwright {}", verb.name)};
  app.set_help_flag();  // --help prints docs/<verb>.md, not a generated list
  int code = 0;
  verb.add(app, code);
  require_values(app, std::string(verb.name), argc, argv);
  refuse_endless_integers(app, std::string(verb.name));
  try {
    app.parse(argc - 1, argv + 1);
  } catch (const CLI::ParseError& e) {
    throw usage_error(app, verb, e);
  }
  return code;
}

int dispatch(int argc, char** argv) {
  const std::string_view first = argc > 1 ? argv[1] : "--help";
  if (first == "--version") {
    fmt::print("batchwright {}\n", BATCHWRIGHT_VERSION);
    return 0;
  }
  if (first == "--help" || first == "-h" || first == "help") {
    fmt::print("{}", overview());
    return 0;
  }
  std::vector<std::string_view> names;
  for (const Verb& verb : verbs()) {
    names.push_back(verb.name);
    if (verb.name != first) continue;
    for (int i = 2; i < argc && std::string_view(argv[i]) != "--"; ++i) {
      if (std::string_view(argv[i]) != "--help" && std::string_view(argv[i]) != "-h") continue;
      for (const DocPage& page : doc_pages()) {
        if (page.name == verb.name) fmt::print("{}", page.text);
      }
      return 0;
    }
    return run_verb(verb, argc, argv);
  }
  const std::string near = nearest_choice(first, names);
  throw Error(ErrorKind::Usage, std::string(first), "is not a verb of batchwright",
              near.empty() ? "`batchwright --help` lists them" : fmt::format("Did you mean '{}'?", near));
}

}  // namespace

int run(int argc, char** argv) {
  const bool as_json = wants_json(argc, argv);
  try {
    const int code = dispatch(argc, argv);
    flush_output();
    return code;
  } catch (const Error& e) {
    print_error(e, as_json);
    return exit_code(e.kind());
  } catch (const std::system_error& e) {  // fmt's, when standard output cannot be written
    print_error(Error(ErrorKind::InvalidInput, "standard output", e.what()), false);
    return exit_code(ErrorKind::InvalidInput);
  } catch (const std::exception& e) {
    print_error(
        Error(ErrorKind::Internal, "internal fault", e.what(), "Please report it with the command line"),
        as_json);
    return exit_code(ErrorKind::Internal);
  }
}

}  // namespace batchwright::cli
