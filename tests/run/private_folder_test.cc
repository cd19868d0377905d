#include "run/private_folder.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <string>

#include "run/test_worker.h"

namespace batchwright::run {
namespace {

void make_older(const std::filesystem::path& folder) {
  std::filesystem::last_write_time(folder,
                                   std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
}

std::size_t folders_in(const std::filesystem::path& parent) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(parent), {}));
}

class PrivateFolders : public ::testing::Test {
 protected:
  void SetUp() override { ::setenv("TMPDIR", parent.path().c_str(), 1); }
  void TearDown() override { ::unsetenv("TMPDIR"); }
  const TemporaryFolder parent;
};

TEST_F(PrivateFolders, OneIsRemovedWithWhatItHolds) {
  {
    const PrivateFolder folder;
    EXPECT_EQ(folder.path().parent_path(), parent.path());
    write_file_atomic(folder.path() / "deep" / "file", "text");
  }
  EXPECT_EQ(folders_in(parent.path()), 0u);
}

TEST_F(PrivateFolders, WhatAKilledProcessLeftIsRemovedByTheNextOne) {
  const pid_t child = ::fork();
  if (child == 0) {
    const PrivateFolder folder;
    write_file_atomic(folder.path() / "file", "text");
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(folders_in(parent.path()), 1u);
  const std::filesystem::path left = std::filesystem::directory_iterator(parent.path())->path();
  {
    const PrivateFolder young_ones_may_be_in_the_making;
  }
  EXPECT_TRUE(std::filesystem::exists(left));
  make_older(left);
  const PrivateFolder used;
  EXPECT_FALSE(std::filesystem::exists(left));
  // However old, a folder in use stays, and so does what only has a like name.
  make_older(used.path());
  std::filesystem::create_directory(parent / "batchwright-runs");
  make_older(parent / "batchwright-runs");
  const PrivateFolder next;
  EXPECT_TRUE(std::filesystem::exists(used.path()));
  EXPECT_TRUE(std::filesystem::exists(parent / "batchwright-runs"));
}

}  // namespace
}  // namespace batchwright::run
