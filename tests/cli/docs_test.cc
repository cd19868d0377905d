#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <regex>
#include <set>
#include <string>

#include "cli/doc_pages.h"
#include "cli/verbs.h"

namespace batchwright::cli {
namespace {

std::string page_of(std::string_view verb) {
  for (const DocPage& page : doc_pages()) {
    if (page.name == verb) return std::string(page.text);
  }
  return "";
}

std::set<std::string> options_of(const Verb& verb) {
  CLI::App app;
  app.set_help_flag();
  int code = 0;
  verb.add(app, code);
  std::set<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.insert("--" + name);
  }
  return names;
}

// Every --option on the page, but not those of other programs' commands, which have underscores.
std::set<std::string> options_on(const std::string& page) {
  static const std::regex kOption("(^|[^A-Za-z0-9-])(--[a-z][A-Za-z0-9_-]*)");
  std::set<std::string> names;
  for (std::sregex_iterator at(page.begin(), page.end(), kOption), end; at != end; ++at) {
    const std::string name = (*at)[2];
    if (name.find('_') == std::string::npos && name != "--help") names.insert(name);
  }
  return names;
}

TEST(Docs, EveryVerbHasAPageWithExactlyItsOptions) {
  ASSERT_FALSE(verbs().empty());
  for (const Verb& verb : verbs()) {
    const std::string page = page_of(verb.name);
    ASSERT_FALSE(page.empty()) << "docs/" << verb.name << ".md is missing";
    const std::set<std::string> declared = options_of(verb), written = options_on(page);
    for (const std::string& option : declared) {
      EXPECT_TRUE(written.contains(option)) << "docs/" << verb.name << ".md does not name " << option;
    }
    for (const std::string& option : written) {
      EXPECT_TRUE(declared.contains(option))
          << "docs/" << verb.name << ".md names " << option << ", which does not exist";
    }
  }
}

}  // namespace
}  // namespace batchwright::cli
