#include "check/syntax.h"

#include <gtest/gtest.h>

namespace batchwright::check {
namespace {

TEST(Syntax, ReadsStatementsWithTheirParts) {
  const Module module = parse_python(
      "def f(a, b=1, *args, key: int = 2, **rest):\n"
      "    for i, x in enumerate(a, start=1):\n"
      "        if (i + 1) % 4 == 0 and not b:\n"
      "            total += x[1:n].sum()\n"
      "        elif b:\n"
      "            pass\n"
      "        else:\n"
      "            return\n");
  ASSERT_EQ(module.body.size(), 1u);
  const Stmt& function = *module.body[0];
  ASSERT_EQ(function.parameters.size(), 5u);
  EXPECT_EQ(function.parameters[3].name, "key");
  ASSERT_NE(function.parameters[3].fallback, nullptr);
  EXPECT_TRUE(function.parameters[4].star);
  const Stmt& loop = *function.body.at(0);
  EXPECT_EQ(loop.kind, StmtKind::For);
  EXPECT_EQ(loop.value->keywords.at(0).first, "start");
  const Stmt& branch = *loop.body.at(0);
  EXPECT_EQ(branch.value->text, "and");
  EXPECT_EQ(branch.value->kids[1]->text, "not");
  EXPECT_EQ(branch.body.at(0)->text, "+");
  ASSERT_EQ(branch.orelse.size(), 1u);
  EXPECT_EQ(branch.orelse[0]->kind, StmtKind::If);
  EXPECT_EQ(branch.orelse[0]->orelse.at(0)->kind, StmtKind::Return);
}

TEST(Syntax, ReadsContextsTogetherAndApart) {
  const Module module = parse_python("with a(), b() as c:\n    pass\nwith (d(), e()):\n    pass\n");
  EXPECT_EQ(module.body.at(0)->items.size(), 2u);
  EXPECT_EQ(module.body.at(0)->items[1].second->text, "c");
  EXPECT_EQ(module.body.at(1)->items.size(), 2u);
}

TEST(Syntax, SurvivesAnyBytes) {
  EXPECT_TRUE(parse_python(std::string(200000, '(')).body.size() < 10);
  EXPECT_TRUE(parse_python("x = " + std::string(5000, '-') + "1\n").incomplete);
  parse_python(std::string("\xff\xfe\0 def (\x80", 10));
  parse_python("if x:\n\tfor y in\n  z = [1, 2\n");
}

}  // namespace
}  // namespace batchwright::check
