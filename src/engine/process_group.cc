#include "engine/process_group.h"

#include <ATen/ops/from_blob.h>
#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <future>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "engine/collective_backend.h"
#include "engine/peer_watch.h"
#include "engine/shared_sum.h"

namespace batchwright::engine {
namespace {

constexpr std::chrono::seconds kArrival{20}, kConnection{8};
// PeerWatch's silence and a few beats; of a process that was there a moment ago, the beats alone.
constexpr std::chrono::seconds kVerdict{20}, kConnectionVerdict{2};
// torch.nn.parallel.DistributedDataParallel's bucket size. A sum that moves less than this in PeerWatch's
// patience counts as stuck.
constexpr std::int64_t kBucketFloats = 25 * (1 << 20) / 4;

constexpr const char* kCannotConnect =
    "the ranks cannot connect to each other (GLOO_SOCKET_IFNAME names the network interface to use): ";

using Activity = PeerWatch::Activity;

// For tests and comparisons: Gloo although the ranks share memory.
bool asks_for_network() {
  const char* sums = std::getenv("BATCHWRIGHT_SUMS");
  return sums != nullptr && std::string_view(sums) == "network";
}

}  // namespace

struct ProcessGroup::Impl {
  Impl(Rendezvous rendezvous, const World& world, OnLost on_lost)
      : meeting(std::move(rendezvous)), watch(meeting, world), lost_handler(std::move(on_lost)) {}

  Rendezvous meeting;
  PeerWatch watch;
  Backend control, gradients;  // Gloo; Gloo or NCCL
  DeviceKind device = DeviceKind::Cpu;
  std::unique_ptr<SharedSum> shared;  // sums gradients instead, where all ranks share memory
  std::deque<c10::intrusive_ptr<c10d::Work>> begun;
  OnLost lost_handler;
  std::once_flag lost_once;

  at::Tensor wrap(float* values, std::int64_t count) const {
    const auto options =
        at::TensorOptions(at::kFloat).device(device == DeviceKind::Cuda ? at::kCUDA : at::kCPU);
    return at::from_blob(values, {count}, options);
  }
  void check() {
    if (const auto verdict = watch.verdict()) lost(*verdict);
  }
  Backend connect(const World& world);
  template <class Start>
  void run(const Start& start);
  void finish(c10d::Work& work);
  void finish_shared();
  [[noreturn]] void explain(const std::string& reason, std::chrono::seconds patience = kVerdict);
  [[noreturn]] void lost(const std::string& why);
};

void ProcessGroup::Impl::lost(const std::string& why) {
  std::call_once(lost_once, [&] { lost_handler(Error(ErrorKind::Internal, "data parallel", why)); });
  watch.let_others_read();
  std::_Exit(exit_code(ErrorKind::Internal));
}

// What the backend says of a broken connection names no rank; the watch finds it out in a moment.
void ProcessGroup::Impl::explain(const std::string& reason, std::chrono::seconds patience) {
  for (const auto start = std::chrono::steady_clock::now();
       std::chrono::steady_clock::now() - start < patience;) {
    check();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  lost("no rank is known to be lost, but " + first_line(reason));
}

// Gloo tries for 40 s to reach a rank that died meanwhile, and cannot be told to stop: it does so on a thread
// of its own, and the watch ends the process.
Backend ProcessGroup::Impl::connect(const World& world) {
  auto connected = std::async(std::launch::async, [&] {
    return connect_gloo(meeting.store, world, "batchwright/gloo", kConnection);
  });
  const auto start = std::chrono::steady_clock::now();
  while (connected.wait_for(std::chrono::milliseconds(200)) != std::future_status::ready) {
    check();
    if (std::chrono::steady_clock::now() - start > kVerdict)
      lost(fmt::format("{}no connection within {} s", kCannotConnect, kVerdict.count()));
  }
  return connected.get();
}

// One collective that is started now and waited for.
template <class Start>
void ProcessGroup::Impl::run(const Start& start) {
  watch.set(Activity::Waiting);
  try {
    const auto work = start();
    finish(*work);
  } catch (const std::exception& e) {
    explain(e.what());
  }
  watch.set(Activity::Working);
}

void ProcessGroup::Impl::finish(c10d::Work& work) {
  struct Signal {
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
  };
  const auto signal = std::make_shared<Signal>();
  const auto future = work.getFuture();
  future->addCallback([signal](auto&) {
    const std::lock_guard lock(signal->mutex);
    signal->done = true;
    signal->changed.notify_one();
  });
  {
    std::unique_lock lock(signal->mutex);
    while (!signal->changed.wait_for(lock, std::chrono::milliseconds(200), [&] { return signal->done; }))
      check();
  }
  if (future->hasError()) explain(future->tryRetrieveErrorMessage());
  // NCCL's future is ready once the kernel is enqueued.
  for (; device == DeviceKind::Cuda && !work.isCompleted(); check()) {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

void ProcessGroup::Impl::finish_shared() {
  constexpr int kSpins = 100;  // the others are expected within microseconds
  auto checked = std::chrono::steady_clock::now();
  for (int idle = 0; !shared->done();) {
    if (shared->advance()) {
      watch.set(Activity::Waiting);  // anew: something moved
      idle = 0;
      continue;
    }
    if (++idle < kSpins)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    if (std::chrono::steady_clock::now() - checked < std::chrono::milliseconds(200)) continue;
    check();
    checked = std::chrono::steady_clock::now();
  }
}

ProcessGroup::ProcessGroup(const World& world, std::unique_ptr<Impl> impl)
    : world_(world), impl_(std::move(impl)) {}

std::unique_ptr<ProcessGroup> ProcessGroup::join(const World& world, DeviceKind device, OnLost on_lost) {
  auto impl = std::make_unique<Impl>(meet(world, kArrival), world, std::move(on_lost));
  impl->device = device;
  try {
    impl->control = impl->connect(world);
    impl->gradients = device == DeviceKind::Cuda
                          ? connect_nccl(impl->meeting.store, world, "batchwright/nccl")
                          : impl->control;
  } catch (const Error&) {
    throw;
  } catch (const std::exception& e) {
    impl->explain(kCannotConnect + std::string(e.what()), kConnectionVerdict);
  }
  std::unique_ptr<ProcessGroup> group(new ProcessGroup(world, std::move(impl)));
  if (device == DeviceKind::Cpu && !asks_for_network()) {
    group->impl_->shared =
        SharedSum::connect(world.rank, group->impl_->meeting.peers,
                           [&](std::span<const double> own) { return group->gather(own); });
  }
  return group;
}

ProcessGroup::~ProcessGroup() = default;

void ProcessGroup::begin_sum(float* values, std::int64_t count) {
  if (impl_->shared != nullptr) {
    impl_->shared->begin(values, count);
    impl_->shared->advance();
    return;
  }
  try {
    for (std::int64_t at = 0; at < count; at += kBucketFloats) {
      std::vector<at::Tensor> bucket = {impl_->wrap(values + at, std::min(kBucketFloats, count - at))};
      impl_->begun.push_back(impl_->gradients->allreduce(bucket));
    }
  } catch (const std::exception& e) {
    impl_->explain(e.what());
  }
}

void ProcessGroup::finish_sums() {
  if (impl_->shared != nullptr) impl_->finish_shared();
  while (!impl_->begun.empty()) {
    impl_->watch.set(Activity::Waiting);
    impl_->finish(*impl_->begun.front());
    impl_->begun.pop_front();
  }
  impl_->watch.set(Activity::Working);
}

void ProcessGroup::sum(float* values, std::int64_t count) {
  begin_sum(values, count);
  finish_sums();
}

void ProcessGroup::sum(std::vector<double>& values) {
  const auto count = static_cast<std::int64_t>(values.size());
  for (std::int64_t at = 0; at < count; at += kBucketFloats) {
    std::vector<at::Tensor> part = {at::from_blob(values.data() + at, {std::min(kBucketFloats, count - at)},
                                                  at::TensorOptions(at::kDouble))};
    impl_->run([&] { return impl_->control->allreduce(part); });
  }
}

std::vector<double> ProcessGroup::gather(std::span<const double> own) {
  std::vector<double> all(own.size() * static_cast<std::size_t>(size()), 0.0);
  std::copy(own.begin(), own.end(), all.begin() + static_cast<std::ptrdiff_t>(own.size()) * rank());
  sum(all);  // each place is a number plus zeros, so the sum over ranks puts them side by side, exactly
  return all;
}

bool ProcessGroup::any(bool own) {
  const double flag = own ? 1 : 0;
  const auto all = gather({&flag, 1});
  return std::any_of(all.begin(), all.end(), [](double x) { return x != 0; });
}

void ProcessGroup::broadcast(float* values, std::int64_t count) {
  std::vector<at::Tensor> tensor = {impl_->wrap(values, count)};
  impl_->run([&] { return impl_->gradients->broadcast(tensor); });
}

std::string ProcessGroup::broadcast(const std::string& text) {
  // A byte a number: exact, and needs no other collective.
  std::vector<double> bytes(1, leads() ? static_cast<double>(text.size()) : 0.0);
  const auto length = static_cast<std::size_t>(gather(bytes).front());
  bytes.assign(length, 0.0);
  if (leads()) std::copy(text.begin(), text.end(), bytes.begin());
  const auto all = gather(bytes);
  std::string result(length, '\0');
  std::transform(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(length), result.begin(),
                 [](double byte) { return static_cast<char>(byte); });
  return result;
}

void ProcessGroup::progress() {
  impl_->watch.progress();
  impl_->check();
}

ProcessGroup::Busy::Busy(ProcessGroup* group) : group_(group) {
  if (group_ != nullptr) group_->impl_->watch.set(Activity::Busy);
}
ProcessGroup::Busy::~Busy() {
  if (group_ != nullptr) group_->impl_->watch.set(Activity::Working);
}

void ProcessGroup::fail(const std::string& message) {
  impl_->watch.fail(message);
  impl_->watch.let_others_read();
}

void ProcessGroup::leave() {
  any(false);
  impl_->watch.leave();
}

}  // namespace batchwright::engine
