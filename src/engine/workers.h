#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace batchwright::engine {

// A fixed team of threads; the caller is thread 0. Every thread's GEMMs run on that thread alone.
class Workers {
 public:
  explicit Workers(int threads);  // 0: one for each core that this process may use
  ~Workers();
  Workers(const Workers&) = delete;

  int size() const { return static_cast<int>(threads_.size()) + 1; }
  // Runs task(0) .. task(size - 1) at once and waits for all. Rethrows the first exception.
  void run(const std::function<void(int)>& task);

 private:
  void loop(int index);
  void run_one(int index);

  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable start_, finished_;
  const std::function<void(int)>* task_ = nullptr;
  std::uint64_t generation_ = 0;
  int running_ = 0;
  bool stopping_ = false;
  std::exception_ptr failure_;
};

}  // namespace batchwright::engine
