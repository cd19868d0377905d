#include "check/library_versions.h"

#include <gtest/gtest.h>

#include "check/together.h"

namespace batchwright::check {
namespace {

TEST(LibraryVersions, AreReadWhereverTheyAreNamed) {
  for (const char* text :
       {"torch==2.5.1\ntransformers==4.46.0\n", "pip install -U 'transformers==4.47.1' accelerate",
        "- `transformers` version: 4.47.0\n- Python version: 3.10", "transformers              4.46.3",
        "transformers = \"5.24.0\"", "transformers==4.47"})
    EXPECT_TRUE(known_library_bug(text)) << text;
  for (const char* text : {"transformers==4.45.2", "transformers>=4.46.0", "transformers==4.57.6",
                           "sentence-transformers==4.46.0", "\"transformers_version\": \"4.46.0\"",
                           "transformers~=4.46.0", "transformers", "transformers==", ""})
    EXPECT_FALSE(known_library_bug(text)) << text;
  EXPECT_EQ(known_library_bug("torch\ntransformers==4.46.0")->line, 2);
}

TEST(LibraryVersions, AreANoteBesideARunThatAccumulates) {
  const auto verdict = [](const char* steps) {
    const std::string arguments =
        std::string("per_device_train_batch_size: 4\nnum_train_epochs: 1\ngradient_accumulation_steps: ") +
        steps;
    const std::vector<SourceFile> files = {
        {"run/args.yaml", arguments, FileKind::Tree, false, ""},
        {"run/requirements.txt", "transformers==4.47.1\n", FileKind::Requirements, false, ""}};
    return check_together(files, {});
  };
  const auto noted = verdict("8");
  ASSERT_EQ(noted.size(), 2u);
  ASSERT_EQ(noted[1].findings.size(), 1u);
  EXPECT_EQ(noted[1].findings[0].kind, "library_bug");
  EXPECT_EQ(noted[1].findings[0].severity, Severity::Note);
  EXPECT_EQ(noted[1].verdict, Verdict::Ok);
  EXPECT_EQ(verdict("1").size(), 1u);
}

}  // namespace
}  // namespace batchwright::check
