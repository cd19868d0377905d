#include "base/workers.h"

#include <utility>

#include "base/cores.h"

namespace batchwright {

Workers::Workers(int threads, std::function<void()> at_start) : at_start_(std::move(at_start)) {
  at_start_();
  const int count = threads > 0 ? threads : usable_cores();
  for (int i = 1; i < count; ++i) threads_.emplace_back([this, i] { loop(i); });
}

Workers::~Workers() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  start_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Workers::run_one(int index) {
  try {
    (*task_)(index);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::current_exception();
  }
}

void Workers::run(const std::function<void(int)>& task) {
  {
    const std::lock_guard lock(mutex_);
    task_ = &task;
    failure_ = nullptr;
    running_ = static_cast<int>(threads_.size());
    ++generation_;
  }
  start_.notify_all();
  run_one(0);
  std::unique_lock lock(mutex_);
  finished_.wait(lock, [this] { return running_ == 0; });
  if (failure_) std::rethrow_exception(failure_);
}

void Workers::loop(int index) {
  at_start_();
  std::uint64_t seen = 0;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      start_.wait(lock, [&] { return stopping_ || generation_ != seen; });
      if (stopping_) return;
      seen = generation_;
    }
    run_one(index);
    const std::lock_guard lock(mutex_);
    if (--running_ == 0) finished_.notify_one();
  }
}

}  // namespace batchwright
