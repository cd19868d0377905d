#include "recorder_watch.h"

#include <utility>

namespace batchwright::recorder {
namespace {

void release_all(Entry* begin, Entry* end) {
  for (Entry* entry = begin; entry != end; ++entry) Py_XDECREF(entry->object);
}

// The entries so far. They are no longer the watch's, because what is called with them, and what dies with
// them, may record again.
struct Taken {
  Entry *begin, *end, *limit;

  explicit Taken(Watch* watch) : begin(watch->entries), end(watch->end), limit(watch->limit) {
    watch->entries = watch->end = watch->limit = nullptr;
  }
  void give_back(Watch* watch) {
    release_all(begin, end);
    if (watch->entries != nullptr) {
      std::free(begin);
      return;
    }
    watch->entries = watch->end = begin;
    watch->limit = limit;
  }
};

void watch_dealloc(PyObject* self) {
  Watch* watch = as_watch(self);
  release_all(watch->entries, watch->end);
  std::free(watch->entries);
  for (PyObject* object : {watch->mark, watch->clock, watch->begins_window, watch->on_window})
    Py_XDECREF(object);
  for (PyObject* method : watch->methods) Py_XDECREF(method);
  PyTypeObject* type = Py_TYPE(self);
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}

// Watch(mark, clock, tape)
PyObject* watch_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject *mark, *clock, *tape;
  if (!PyArg_ParseTuple(args, "OOO", &mark, &clock, &tape)) return nullptr;
  PyObject* self = PyType_GenericAlloc(type, 0);
  if (self == nullptr) return nullptr;
  Watch* watch = as_watch(self);
  watch->mark = new_reference(mark);
  watch->clock = new_reference(clock);
  watch->looking = 1;
  watch->due = 1;
  bool good = true;
  const auto method = [&](const char* name) {
    PyObject* found = PyObject_GetAttrString(tape, name);
    good = good && found != nullptr;
    return found;
  };
  for (std::size_t i = 1; i < kWhats && good; ++i) watch->methods[i] = method(kMethods[i]);
  if (good) watch->begins_window = method("begins_window");
  if (good) watch->on_window = method("on_window");
  if (good) return self;
  Py_DECREF(self);
  return nullptr;
}

// record((happened, moment, a, b)), as list.extend takes it.
bool add_four(Watch* watch, PyObject* four) {
  if (!PyTuple_Check(four) || PyTuple_Size(four) != 4) {
    PyErr_SetString(PyExc_TypeError, "an entry is (happened, moment, a, b)");
    return false;
  }
  watch->add({0, new_reference(four), What::Other, false});
  return true;
}

PyObject* watch_record(PyObject* self, PyObject* four) {
  if (!add_four(as_watch(self), four)) return nullptr;
  Py_RETURN_NONE;
}

PyObject* watch_record_before_last(PyObject* self, PyObject* four) {
  Watch* watch = as_watch(self);
  if (!add_four(watch, four)) return nullptr;
  if (watch->size() > 1) std::swap(watch->end[-1], watch->end[-2]);
  Py_RETURN_NONE;
}

PyObject* watch_clear(PyObject* self, PyObject*) {
  Watch* watch = as_watch(self);
  Taken(watch).give_back(watch);
  Py_RETURN_NONE;
}

bool read_entry(const Watch* watch, const Entry& entry) {
  PyObject* result = nullptr;
  if (entry.what == What::Other) {
    const auto item = [&](Py_ssize_t i) { return PyTuple_GetItem(entry.object, i); };
    result = PyObject_CallFunctionObjArgs(item(0), item(1), item(2), item(3), nullptr);
  } else {
    result = PyObject_CallFunction(watch->methods[static_cast<std::size_t>(entry.what)], "LOO", entry.moment,
                                   entry.object != nullptr ? entry.object : Py_None,
                                   entry.what != What::Forward ? Py_None
                                   : entry.tokens              ? Py_True
                                                               : Py_False);
  }
  Py_XDECREF(result);
  return result != nullptr;
}

// A window of plain micro-steps and one optimizer's step, summed as batchwright_tape sums it.
struct Window {
  Nanoseconds forward = 0, backward = 0, optimizer = 0;
  long long micro_steps = 0, examples = 0, padded = 0;
  const Entry* last = nullptr;  // the step's end; null: the entries hold no such window
};

// The examples and, where the input is a matrix of tokens, the places of one call.
std::pair<long long, long long> size_of(PyObject* shape, bool tokens) {
  const Py_ssize_t dimensions = PyTuple_Size(shape);
  if (dimensions < 1) return {0, 0};
  const long long rows = PyLong_AsLongLong(PyTuple_GetItem(shape, 0));
  const long long columns = tokens && dimensions == 2 ? PyLong_AsLongLong(PyTuple_GetItem(shape, 1)) : 0;
  if (PyErr_Occurred() == nullptr) return {rows, rows * columns};
  PyErr_Clear();
  return {0, 0};
}

Window window_at(const Entry* entry, const Entry* end) {
  Window window;
  Nanoseconds forward_begin = 0, backward_begin = 0;
  bool in_forward = false, in_backward = false;
  long long examples = 0, padded = 0;  // of the micro-step
  for (; entry != end; ++entry) {
    if (entry->what == What::Forward && !in_backward) {
      if (!in_forward) forward_begin = entry->moment;
      in_forward = true;
      const auto [rows, places] = size_of(entry->object, entry->tokens);
      examples = std::max(examples, rows);
      padded += places;
    } else if (entry->what == What::Backward && !in_backward) {
      backward_begin = entry->moment;
      in_backward = true;
      if (in_forward) window.forward += backward_begin - forward_begin;
      in_forward = false;
      ++window.micro_steps;
      window.examples += std::exchange(examples, 0);
      window.padded += std::exchange(padded, 0);
    } else if (entry->what == What::BackwardEnd && in_backward) {
      window.backward += entry->moment - backward_begin;
      in_backward = false;
    } else {
      break;
    }
  }
  const bool stepped = end - entry >= 2 && entry[0].what == What::Step && entry[1].what == What::StepEnd;
  if (!stepped || in_forward || in_backward || window.micro_steps == 0) return {};
  window.optimizer = entry[1].moment - entry[0].moment;
  window.last = entry + 1;
  return window;
}

// Calls the tape with every entry, or with a whole window where the tape says that it begins one: between two
// steps these calls are most of what observing costs.
bool read_entries(const Watch* watch, const Entry* entry, const Entry* end) {
  bool begins = false;  // known, because a whole window ended before
  while (entry != end) {
    Window window;
    if (entry->what == What::Forward || entry->what == What::Backward) window = window_at(entry, end);
    if (window.last != nullptr && !begins) {
      const int asked = is_true(PyObject_CallNoArgs(watch->begins_window));
      if (asked < 0) return false;
      begins = asked == 1;
    }
    if (window.last == nullptr || !begins) {
      begins = false;
      if (!read_entry(watch, *entry++)) return false;
      continue;
    }
    PyObject* result = PyObject_CallFunction(
        watch->on_window, "LOLLLLLL", window.last->moment, window.last->object, window.micro_steps,
        window.examples, window.padded, window.forward, window.backward, window.optimizer);
    if (result == nullptr) return false;
    Py_DECREF(result);
    entry = window.last + 1;
  }
  return true;
}

PyObject* watch_read(PyObject* self, PyObject*) {
  Watch* watch = as_watch(self);
  Taken read(watch);
  const bool good = read_entries(watch, read.begin, read.end);
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  if (!good) PyErr_Fetch(&type, &value, &trace);  // releasing must not touch the exception
  read.give_back(watch);
  if (good) Py_RETURN_NONE;
  PyErr_Restore(type, value, trace);
  return nullptr;
}

Py_ssize_t watch_length(PyObject* self) { return static_cast<Py_ssize_t>(as_watch(self)->size()); }

PyMethodDef watch_methods[] = {
    {"record", watch_record, METH_O, "record((happened, moment, a, b))"},
    {"record_before_last", watch_record_before_last, METH_O, "the same, before the entry that is last"},
    {"read", watch_read, METH_NOARGS, "calls happened(moment, a, b) of every entry, and forgets them"},
    {"clear", watch_clear, METH_NOARGS, "forgets the entries"},
    {nullptr, nullptr, 0, nullptr}};

PyMemberDef watch_members[] = {{"mark", T_OBJECT, offsetof(Watch, mark), 0, nullptr},
                               {"busy", T_BOOL, offsetof(Watch, busy), 0, nullptr},
                               {"dead", T_BOOL, offsetof(Watch, dead), 0, nullptr},
                               {"looking", T_BOOL, offsetof(Watch, looking), 0, nullptr},
                               {"tokens", T_BOOL, offsetof(Watch, tokens), 0, nullptr},
                               {"calls", T_LONGLONG, offsetof(Watch, calls), 0, nullptr},
                               {"due", T_LONGLONG, offsetof(Watch, due), 0, nullptr},
                               {"wake", T_LONGLONG, offsetof(Watch, wake), 0, nullptr},
                               {nullptr, 0, 0, 0, nullptr}};

}  // namespace

PyType_Slot watch_slots[] = {slot(Py_tp_new, watch_new),         slot(Py_tp_dealloc, watch_dealloc),
                             slot(Py_tp_methods, watch_methods), slot(Py_tp_members, watch_members),
                             slot(Py_sq_length, watch_length),   {0, nullptr}};

}  // namespace batchwright::recorder
