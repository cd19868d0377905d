// The tape of the recorder (batchwright_recorder.cc): what the patches write inside a step, as plain data.
#pragma once

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030A0000
#include <Python.h>
#include <structmember.h>
#include <time.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <iterator>

namespace batchwright::recorder {

using Nanoseconds = long long;

// time.perf_counter_ns of Linux.
inline Nanoseconds now() {
  timespec moment;
  clock_gettime(CLOCK_MONOTONIC, &moment);
  return 1'000'000'000LL * moment.tv_sec + moment.tv_nsec;
}

inline PyObject* new_reference(PyObject* object) {
  Py_XINCREF(object);
  return object;
}

// What the tape's method of that name is called with. Other: a method that the entry names itself.
enum class What : char { Other, Forward, Backward, BackwardEnd, Step, StepEnd };
constexpr const char* kMethods[] = {nullptr,           "on_forward", "on_backward",
                                    "on_backward_end", "on_step",    "on_step_end"};
constexpr std::size_t kWhats = std::size(kMethods);

struct Entry {
  Nanoseconds moment;
  PyObject* object;  // Forward: the input's shape; StepEnd: the optimizer; Other: (happened, moment, a, b)
  What what;
  bool tokens;  // Forward: the input is a matrix of tokens
};

// The Python type Watch(mark, clock, tape), with the attributes of batchwright_watch.Watch.
// What a step reads and writes comes first, and lies together.
struct Watch {
  PyObject_HEAD PyObject* mark;
  PyObject* clock;  // time.perf_counter_ns: while `mark` is this, plain steps are recorded here
  Entry *end, *limit;
  char busy, dead, looking, tokens;
  Nanoseconds calls, due, wake;
  Entry* entries;
  PyObject* methods[kWhats];  // of the tape
  PyObject *begins_window, *on_window;

  bool plain() const { return mark == clock && !looking; }
  std::size_t size() const { return static_cast<std::size_t>(end - entries); }

  void grow() {
    const std::size_t held = size(), room = std::max<std::size_t>(2 * held, 1 << 12);
    Entry* more = static_cast<Entry*>(std::realloc(entries, room * sizeof(Entry)));
    if (more == nullptr) std::abort();
    entries = more;
    end = more + held;
    limit = more + room;
  }
  void add(const Entry& entry) {
    if (end == limit) grow();
    *end++ = entry;
  }
  Nanoseconds record(What what, PyObject* object = nullptr) {
    const Nanoseconds moment = now();
    add({moment, new_reference(object), what, tokens != 0});
    return moment;
  }
};

inline Watch* as_watch(PyObject* self) { return reinterpret_cast<Watch*>(self); }

// 1 or 0, or -1: an exception.
inline int is_true(PyObject* owned) {
  if (owned == nullptr) return -1;
  const int yes = PyObject_IsTrue(owned);
  Py_DECREF(owned);
  return yes;
}

template <class Function>
PyType_Slot slot(int number, Function* function) {
  return {number, reinterpret_cast<void*>(function)};
}

extern PyType_Slot watch_slots[];

}  // namespace batchwright::recorder
