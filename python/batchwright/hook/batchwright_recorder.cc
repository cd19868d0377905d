// The watch of batchwright_tape.py in machine code: the same tape, and for each patch a callable that does
// what its Python twin does in a plain step and calls the twin in any other. Inside a step that has emptied
// the caches a Python function costs microseconds, whatever it does (docs/benchmarks.md).
//
// One file serves every CPython from 3.10 on (the limited API). Where it does not load, batchwright_tape's
// own Watch runs.
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030A0000
#include <Python.h>
#include <structmember.h>
#include <time.h>

#include <cstddef>
#include <new>
#include <utility>
#include <vector>

namespace {

using Nanoseconds = long long;

// time.perf_counter_ns of Linux.
Nanoseconds now() {
  timespec moment;
  clock_gettime(CLOCK_MONOTONIC, &moment);
  return 1'000'000'000LL * moment.tv_sec + moment.tv_nsec;
}

PyObject* new_reference(PyObject* object) {
  Py_XINCREF(object);
  return object;
}

// A moment is `moment`, or where that is null the nanoseconds; null arguments are None.
struct Entry {
  PyObject *happened, *moment;
  Nanoseconds nanoseconds;
  PyObject *a, *b;

  void release() {
    for (PyObject* object : {happened, moment, a, b}) Py_XDECREF(object);
  }
};

struct Watch {
  PyObject_HEAD std::vector<Entry>* entries;
  PyObject* mark;
  PyObject* clock;  // time.perf_counter_ns: while `mark` is this, plain steps are recorded here
  char busy, dead, looking, tokens;
  Nanoseconds calls, due, wake;

  bool plain() const { return mark == clock && !looking; }
  void record(PyObject* happened, PyObject* a = nullptr, PyObject* b = nullptr) {
    entries->push_back({new_reference(happened), nullptr, now(), new_reference(a), new_reference(b)});
  }
};

Watch* as_watch(PyObject* self) { return reinterpret_cast<Watch*>(self); }

PyObject* watch_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject *mark, *clock;
  if (!PyArg_ParseTuple(args, "OO", &mark, &clock)) return nullptr;
  PyObject* self = PyType_GenericAlloc(type, 0);
  if (self == nullptr) return nullptr;
  Watch* watch = as_watch(self);
  watch->entries = new (std::nothrow) std::vector<Entry>();
  if (watch->entries == nullptr) {
    Py_DECREF(self);
    return PyErr_NoMemory();
  }
  watch->entries->reserve(1 << 12);
  watch->mark = new_reference(mark);
  watch->clock = new_reference(clock);
  watch->looking = 1;
  watch->due = 1;
  return self;
}

void clear_entries(Watch* watch) {
  std::vector<Entry> gone;
  gone.swap(*watch->entries);  // what dies with an entry may record again
  watch->entries->reserve(gone.capacity());
  for (Entry& entry : gone) entry.release();
}

void watch_dealloc(PyObject* self) {
  Watch* watch = as_watch(self);
  if (watch->entries != nullptr) {
    clear_entries(watch);
    delete watch->entries;
  }
  Py_XDECREF(watch->mark);
  Py_XDECREF(watch->clock);
  PyTypeObject* type = Py_TYPE(self);
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}

// record((happened, moment, a, b)), as list.extend takes it.
bool entry_of(PyObject* four, Entry* entry) {
  PyObject *happened, *moment, *a, *b;
  if (!PyArg_ParseTuple(four, "OOOO", &happened, &moment, &a, &b)) return false;
  *entry = {new_reference(happened), new_reference(moment), 0, new_reference(a), new_reference(b)};
  return true;
}

PyObject* watch_record(PyObject* self, PyObject* four) {
  Entry entry;
  if (!entry_of(four, &entry)) return nullptr;
  as_watch(self)->entries->push_back(entry);
  Py_RETURN_NONE;
}

PyObject* watch_record_before_last(PyObject* self, PyObject* four) {
  Entry entry;
  if (!entry_of(four, &entry)) return nullptr;
  std::vector<Entry>& entries = *as_watch(self)->entries;
  entries.insert(entries.empty() ? entries.end() : entries.end() - 1, entry);
  Py_RETURN_NONE;
}

PyObject* watch_clear(PyObject* self, PyObject*) {
  clear_entries(as_watch(self));
  Py_RETURN_NONE;
}

bool read_entry(const Entry& entry) {
  PyObject* moment =
      entry.moment != nullptr ? new_reference(entry.moment) : PyLong_FromLongLong(entry.nanoseconds);
  if (moment == nullptr) return false;
  PyObject* result =
      PyObject_CallFunctionObjArgs(entry.happened, moment, entry.a != nullptr ? entry.a : Py_None,
                                   entry.b != nullptr ? entry.b : Py_None, nullptr);
  Py_DECREF(moment);
  Py_XDECREF(result);
  return result != nullptr;
}

PyObject* watch_read(PyObject* self, PyObject*) {
  Watch* watch = as_watch(self);
  std::vector<Entry> read;
  read.swap(*watch->entries);
  bool good = true;
  for (Entry& entry : read) {
    good = good && read_entry(entry);
    if (good) {
      entry.release();
    } else {  // releasing must not touch the exception
      PyObject *type, *value, *trace;
      PyErr_Fetch(&type, &value, &trace);
      entry.release();
      PyErr_Restore(type, value, trace);
    }
  }
  if (!good) return nullptr;
  if (watch->entries->empty()) {
    read.clear();
    read.swap(*watch->entries);  // keeps the memory
  }
  Py_RETURN_NONE;
}

Py_ssize_t watch_length(PyObject* self) { return static_cast<Py_ssize_t>(as_watch(self)->entries->size()); }

// ---- the patches: each calls what it replaces, and its Python twin where a step is not plain.
struct Patch {
  PyObject_HEAD Watch* watch;
  PyObject *wrapped, *twin;
  // Call: the module that is watched, torch.is_grad_enabled, torch.Tensor. After: probe.tick.
  PyObject *module, *grad_enabled, *tensor;
  PyObject *begins, *ends;  // what the tape's entries call
};

Patch* as_patch(PyObject* self) { return reinterpret_cast<Patch*>(self); }

PyObject* patch_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject *watch, *wrapped, *twin, *begins, *ends = nullptr, *module = nullptr, *grad_enabled = nullptr,
                                             *tensor = nullptr;
  if (!PyArg_ParseTuple(args, "OOOO|OOOO", &watch, &wrapped, &twin, &begins, &ends, &module, &grad_enabled,
                        &tensor))
    return nullptr;
  PyObject* self = PyType_GenericAlloc(type, 0);
  if (self == nullptr) return nullptr;
  Patch* patch = as_patch(self);
  patch->watch = as_watch(new_reference(watch));
  patch->wrapped = new_reference(wrapped);
  patch->twin = new_reference(twin);
  patch->begins = new_reference(begins);
  patch->ends = new_reference(ends);
  patch->module = new_reference(module);
  patch->grad_enabled = new_reference(grad_enabled);
  patch->tensor = new_reference(tensor);
  return self;
}

void patch_dealloc(PyObject* self) {
  Patch* patch = as_patch(self);
  for (PyObject* object : {reinterpret_cast<PyObject*>(patch->watch), patch->wrapped, patch->twin,
                           patch->begins, patch->ends, patch->module, patch->grad_enabled, patch->tensor})
    Py_XDECREF(object);
  PyTypeObject* type = Py_TYPE(self);
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}

// A name, a text, a signature: those of the function that it replaces.
PyObject* patch_getattr(PyObject* self, PyObject* name) {
  PyObject* found = PyObject_GenericGetAttr(self, name);
  if (found != nullptr || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
  PyErr_Clear();
  return PyObject_GetAttr(as_patch(self)->wrapped, name);
}

PyObject* backward_call(PyObject* self, PyObject* args, PyObject* kwargs) {
  Patch* patch = as_patch(self);
  Watch* watch = patch->watch;
  if (watch->busy) return PyObject_Call(patch->wrapped, args, kwargs);
  if (!watch->plain()) return PyObject_Call(patch->twin, args, kwargs);
  watch->record(patch->begins);
  watch->busy = 1;
  PyObject* result = PyObject_Call(patch->wrapped, args, kwargs);
  watch->record(patch->ends);
  watch->busy = watch->dead;
  return result;
}

// -1: an exception.
int is_true(PyObject* owned) {
  if (owned == nullptr) return -1;
  const int yes = PyObject_IsTrue(owned);
  Py_DECREF(owned);
  return yes;
}

PyObject* module_call(PyObject* self, PyObject* args, PyObject* kwargs) {
  Patch* patch = as_patch(self);
  Watch* watch = patch->watch;
  const Py_ssize_t count = PyTuple_Size(args);
  if (watch->busy || count < 1 || PyTuple_GetItem(args, 0) != patch->module)
    return PyObject_Call(patch->wrapped, args, kwargs);
  PyObject* input = count > 1 ? PyTuple_GetItem(args, 1) : nullptr;
  if (!watch->plain() || (kwargs != nullptr && PyDict_Size(kwargs) > 0) || input == nullptr ||
      reinterpret_cast<PyObject*>(Py_TYPE(input)) != patch->tensor)
    return PyObject_Call(patch->twin, args, kwargs);
  int trains = is_true(PyObject_GetAttrString(patch->module, "training"));
  if (trains == 1) trains = is_true(PyObject_CallNoArgs(patch->grad_enabled));
  if (trains < 0) return nullptr;
  if (trains == 1) {
    PyObject* shape = PyObject_GetAttrString(input, "shape");
    if (shape == nullptr) return nullptr;
    watch->record(patch->begins, shape, watch->tokens ? Py_True : Py_False);
    Py_DECREF(shape);
  }
  return PyObject_Call(patch->wrapped, args, kwargs);
}

// As a function does, so that Class.__call__ binds.
PyObject* module_call_get(PyObject* self, PyObject* object, PyObject*) {
  if (object == nullptr || object == Py_None) return new_reference(self);
  PyObject* types = PyImport_ImportModule("types");
  if (types == nullptr) return nullptr;
  PyObject* bound = PyObject_CallMethod(types, "MethodType", "OO", self, object);
  Py_DECREF(types);
  return bound;
}

PyObject* before_step_call(PyObject* self, PyObject* args, PyObject* kwargs) {
  Patch* patch = as_patch(self);
  if (patch->watch->mark != patch->watch->clock) return PyObject_Call(patch->twin, args, kwargs);
  patch->watch->record(patch->begins);
  Py_RETURN_NONE;
}

PyObject* after_step_call(PyObject* self, PyObject* args, PyObject* kwargs) {
  Patch* patch = as_patch(self);
  Watch* watch = patch->watch;
  PyObject* optimizer = PyTuple_Size(args) > 0 ? PyTuple_GetItem(args, 0) : nullptr;
  if (watch->mark != watch->clock || optimizer == nullptr) return PyObject_Call(patch->twin, args, kwargs);
  watch->record(patch->begins, optimizer);
  ++watch->calls;
  if (watch->entries->back().nanoseconds < watch->wake && watch->calls < watch->due) Py_RETURN_NONE;
  return PyObject_CallFunctionObjArgs(patch->wrapped, optimizer, nullptr);  // probe.tick
}

// ---- the module
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

PyMemberDef patch_members[] = {{"__wrapped__", T_OBJECT, offsetof(Patch, wrapped), READONLY, nullptr},
                               {nullptr, 0, 0, 0, nullptr}};

template <class Function>
PyType_Slot slot(int number, Function* function) {
  return {number, reinterpret_cast<void*>(function)};
}

PyType_Slot watch_slots[] = {slot(Py_tp_new, watch_new),         slot(Py_tp_dealloc, watch_dealloc),
                             slot(Py_tp_methods, watch_methods), slot(Py_tp_members, watch_members),
                             slot(Py_sq_length, watch_length),   {0, nullptr}};

bool add_type(PyObject* module, const char* name, int size, unsigned flags, PyType_Slot* slots) {
  PyType_Spec spec{name, size, 0, static_cast<unsigned>(Py_TPFLAGS_DEFAULT) | flags, slots};
  PyObject* type = PyType_FromSpec(&spec);
  if (type == nullptr) return false;
  const bool added = PyModule_AddType(module, reinterpret_cast<PyTypeObject*>(type)) == 0;
  Py_DECREF(type);
  return added;
}

bool add_patch(PyObject* module, const char* name, ternaryfunc call, descrgetfunc get = nullptr) {
  PyType_Slot slots[8] = {slot(Py_tp_new, patch_new),
                          slot(Py_tp_dealloc, patch_dealloc),
                          slot(Py_tp_members, patch_members),
                          slot(Py_tp_getattro, patch_getattr),
                          slot(Py_tp_call, call),
                          {0, nullptr}};
  if (get != nullptr) slots[5] = slot(Py_tp_descr_get, get);
  return add_type(module, name, sizeof(Patch), get != nullptr ? Py_TPFLAGS_METHOD_DESCRIPTOR : 0, slots);
}

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "batchwright_recorder", nullptr, -1, nullptr, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit_batchwright_recorder() {
  PyObject* module = PyModule_Create(&definition);
  if (module == nullptr) return nullptr;
  if (add_type(module, "batchwright_recorder.Watch", sizeof(Watch), 0, watch_slots) &&
      add_patch(module, "batchwright_recorder.Call", module_call, module_call_get) &&
      add_patch(module, "batchwright_recorder.Backward", backward_call) &&
      add_patch(module, "batchwright_recorder.BeforeStep", before_step_call) &&
      add_patch(module, "batchwright_recorder.AfterStep", after_step_call))
    return module;
  Py_DECREF(module);
  return nullptr;
}
