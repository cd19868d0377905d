#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace batchwright {

// A fixed team of threads; the caller is thread 0.
class Workers {
 public:
  // threads: 0 for one on each core that this process may use. at_start runs once on every thread of the
  // team, the caller's too; it must not throw.
  explicit Workers(int threads, std::function<void()> at_start = [] {});
  ~Workers();
  Workers(const Workers&) = delete;

  int size() const { return static_cast<int>(threads_.size()) + 1; }
  // Runs task(0) .. task(size - 1) at once and waits for all. Rethrows the first exception.
  void run(const std::function<void(int)>& task);

 private:
  void loop(int index);
  void run_one(int index);

  const std::function<void()> at_start_;
  std::mutex mutex_;
  std::condition_variable start_, finished_;
  const std::function<void(int)>* task_ = nullptr;
  std::uint64_t generation_ = 0;
  int running_ = 0;
  bool stopping_ = false;
  std::exception_ptr failure_;
  std::vector<std::thread> threads_;  // last: they use all of the above
};

}  // namespace batchwright
