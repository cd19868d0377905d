#include "engine/peer_watch.h"

#include <fmt/format.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace batchwright::engine {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr const char* kFailedKey = "batchwright/failed";
constexpr const char* kLeft = "left";

std::string beat_key(int rank) { return fmt::format("batchwright/beat/{}", rank); }

std::int64_t now_milliseconds() {
  return std::chrono::duration_cast<milliseconds>(Clock::now().time_since_epoch()).count();
}

long seconds_of(std::int64_t count) { return static_cast<long>((count + 500) / 1000); }  // of milliseconds

}  // namespace

struct PeerWatch::Shared {
  Store store;
  World world;
  WatchTimes times;
  std::vector<PeerIdentity> peers;

  std::atomic<std::int64_t> last_progress{now_milliseconds()}, slowest{0}, last_round{now_milliseconds()};
  std::atomic<Activity> activity{Activity::Busy};
  std::atomic<std::int64_t> waits{0};  // how many waits began: tells one wait from the next

  mutable std::mutex mutex;
  std::condition_variable changed;
  std::string verdict, own_failure;
  bool own_failure_told = false, leaving = false, ended = false;

  // Of the thread alone.
  struct Seen {
    std::string text;
    std::int64_t at = now_milliseconds();
  };
  std::vector<Seen> seen;
  std::int64_t beats = 0, all_waiting_since = 0;
  std::string waiting_texts;

  void run();
  void round();
  std::string own_stall() const;
  std::string judge(int rank);
  std::string judge_waits();
  void conclude(const std::string& text);
};

// One piece of work takes far longer than any before it: this rank's own threads hang.
std::string PeerWatch::Shared::own_stall() const {
  if (activity != Activity::Working) return "";
  const std::int64_t since = now_milliseconds() - last_progress, longest = slowest;
  const std::int64_t limit =
      longest == 0 ? times.first_progress.count()
                   : std::max<std::int64_t>(times.least_progress.count(), times.slowest_factor * longest);
  if (since <= limit) return "";
  return fmt::format("has made no progress for {} s, and its longest piece of work took {:.1f} s",
                     seconds_of(since), static_cast<double>(longest) / 1000);
}

std::string PeerWatch::Shared::judge(int rank) {
  const auto index = static_cast<std::size_t>(rank);
  Seen& last = seen[index];
  if (last.text == kLeft) return "";
  if (store->check({beat_key(rank)})) {
    const std::string text = store->get_to_str(beat_key(rank));
    if (text != last.text) last = {text, now_milliseconds()};
  }
  if (last.text == kLeft) return "";
  if (peers[index].is_gone()) return "is gone: its process ended";
  const std::int64_t silent = now_milliseconds() - last.at;
  return silent > times.silence.count()
             ? fmt::format("has given no sign of life for {} s", seconds_of(silent))
             : "";
}

// When every rank waits for the same sum and nothing moves, no rank is at fault: a connection is.
std::string PeerWatch::Shared::judge_waits() {
  std::string texts;
  for (const Seen& one : seen) {
    const auto space = one.text.find(' ');
    const std::string wait = space == std::string::npos ? "" : one.text.substr(space + 1);
    if (wait.empty() || wait == "0") {
      waiting_texts.clear();
      return "";
    }
    texts += wait + " ";
  }
  if (texts != waiting_texts) {
    waiting_texts = texts;
    all_waiting_since = now_milliseconds();
  }
  const std::int64_t since = now_milliseconds() - all_waiting_since;
  return since > times.silence.count()
             ? fmt::format(
                   "all ranks have waited {} s for one collective: a connection between them is broken",
                   seconds_of(since))
             : "";
}

void PeerWatch::Shared::conclude(const std::string& text) {
  {
    const std::lock_guard lock(mutex);
    if (!verdict.empty()) return;
    verdict = text;
  }
  changed.notify_all();
  // The first finding stands: what follows is its consequence.
  store->compareSet(kFailedKey, "", text);
}

void PeerWatch::Shared::round() {
  std::string failure;
  bool last = false;
  {
    const std::lock_guard lock(mutex);
    failure = own_failure;
    last = leaving;
  }
  if (failure.empty()) failure = own_stall();
  if (!failure.empty()) {
    conclude(peers[static_cast<std::size_t>(world.rank)].name(world.rank) + ": " + failure);
    const std::lock_guard lock(mutex);
    own_failure_told = true;
    changed.notify_all();
    return;
  }
  const std::int64_t wait = activity == Activity::Waiting ? waits.load() : 0;
  const std::string text = last ? kLeft : fmt::format("{} {}", ++beats, wait);
  store->set(beat_key(world.rank), text);
  seen[static_cast<std::size_t>(world.rank)] = {text, now_milliseconds()};
  if (last) return;
  if (store->check({kFailedKey})) return conclude(store->get_to_str(kFailedKey));
  for (int rank = 0; rank < (world.rank == 0 ? world.size : 1); ++rank) {
    if (rank == world.rank) continue;
    const std::string found = judge(rank);
    if (!found.empty()) return conclude(peers[static_cast<std::size_t>(rank)].name(rank) + " " + found);
  }
  if (world.rank != 0) return;
  const std::string found = judge_waits();
  if (!found.empty()) conclude(found);
}

void PeerWatch::Shared::run() {
  bool go_on = true;
  while (go_on) {
    try {
      round();
    } catch (const std::exception& e) {
      const std::lock_guard lock(mutex);
      if (verdict.empty() && !leaving) {
        verdict = fmt::format("{} is gone, and the store with it ({})", peers.front().name(0),
                              first_line(e.what()));
      }
      go_on = false;
    }
    last_round = now_milliseconds();
    std::unique_lock lock(mutex);
    go_on = go_on && !leaving;
    if (!go_on) break;
    changed.wait_for(lock, times.beat,
                     [this] { return leaving || (!own_failure.empty() && !own_failure_told); });
  }
  // A wish to leave that came during the last round still has to be told.
  try {
    if (verdict.empty() && seen[static_cast<std::size_t>(world.rank)].text != kLeft) round();
  } catch (const std::exception&) {
  }
  const std::lock_guard lock(mutex);
  ended = true;
  changed.notify_all();
}

PeerWatch::PeerWatch(const Rendezvous& rendezvous, const World& world, WatchTimes times)
    : shared_(std::make_shared<Shared>()) {
  shared_->store = rendezvous.store->clone();
  shared_->world = world;
  shared_->times = times;
  shared_->peers = rendezvous.peers;
  shared_->seen.resize(rendezvous.peers.size());
  std::thread([shared = shared_] { shared->run(); }).detach();
}

PeerWatch::~PeerWatch() { leave(); }

void PeerWatch::set(Activity activity) {
  if (activity == Activity::Waiting) ++shared_->waits;
  shared_->last_progress = now_milliseconds();
  shared_->activity = activity;
}

void PeerWatch::progress() {
  const std::int64_t now = now_milliseconds(), took = now - shared_->last_progress.exchange(now);
  std::int64_t slowest = shared_->slowest;
  // At least 1, so that 0 keeps its meaning: nothing was done yet.
  while (std::max<std::int64_t>(took, 1) > slowest &&
         !shared_->slowest.compare_exchange_weak(slowest, std::max<std::int64_t>(took, 1))) {
  }
}

std::optional<std::string> PeerWatch::verdict() const {
  {
    const std::lock_guard lock(shared_->mutex);
    if (!shared_->verdict.empty()) return shared_->verdict;
    if (shared_->leaving) return std::nullopt;
  }
  // A frozen server of the store keeps the watching thread itself from coming back.
  const std::int64_t silent = now_milliseconds() - shared_->last_round;
  if (silent <= shared_->times.silence.count() + shared_->times.beat.count()) return std::nullopt;
  return fmt::format("{}, or the machine that serves the store, has not answered for {} s",
                     shared_->peers.front().name(0), seconds_of(silent));
}

void PeerWatch::fail(const std::string& message) {
  std::unique_lock lock(shared_->mutex);
  if (!shared_->verdict.empty() || shared_->leaving) return;
  shared_->own_failure = message;
  shared_->changed.notify_all();
  shared_->changed.wait_for(lock, std::chrono::seconds(2),
                            [this] { return shared_->own_failure_told || shared_->ended; });
}

void PeerWatch::let_others_read() const {
  if (shared_->world.rank == 0) std::this_thread::sleep_for(2 * shared_->times.beat);
}

void PeerWatch::leave() {
  std::unique_lock lock(shared_->mutex);
  shared_->leaving = true;
  shared_->changed.notify_all();
  shared_->changed.wait_for(lock, std::chrono::seconds(2), [this] { return shared_->ended; });
}

}  // namespace batchwright::engine
