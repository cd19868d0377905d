// The watch of batchwright_tape.py in machine code: the same tape, and for each patch a callable that does
// what its Python twin does in a plain step and calls the twin in any other. Inside a step that has emptied
// the caches a Python function costs microseconds, whatever it does (docs/benchmarks.md).
//
// One file serves every CPython from 3.10 on (the limited API). Where it does not load, batchwright_tape's
// own Watch runs.
#include "recorder_watch.h"

namespace batchwright::recorder {
namespace {

// ---- the patches: each calls what it replaces, and its Python twin where a step is not plain.
struct Patch {
  PyObject_HEAD Watch* watch;
  PyObject *wrapped, *twin;  // AfterStep: what it wraps is probe.tick
  // Call: the module that is watched and its attributes, torch.is_grad_enabled, torch.Tensor.
  PyObject *module, *attributes, *grad_enabled, *tensor;
};

Patch* as_patch(PyObject* self) { return reinterpret_cast<Patch*>(self); }

// Patch(watch, wrapped, twin), Call(watch, wrapped, twin, module, grad_enabled, tensor)
PyObject* patch_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject *watch, *wrapped, *twin, *module = nullptr, *grad_enabled = nullptr, *tensor = nullptr;
  if (!PyArg_ParseTuple(args, "OOO|OOO", &watch, &wrapped, &twin, &module, &grad_enabled, &tensor))
    return nullptr;
  PyObject* attributes = nullptr;
  if (module != nullptr && (attributes = PyObject_GetAttrString(module, "__dict__")) == nullptr)
    return nullptr;
  PyObject* self = PyType_GenericAlloc(type, 0);
  if (self == nullptr) {
    Py_XDECREF(attributes);
    return nullptr;
  }
  Patch* patch = as_patch(self);
  patch->watch = as_watch(new_reference(watch));
  patch->wrapped = new_reference(wrapped);
  patch->twin = new_reference(twin);
  patch->module = new_reference(module);
  patch->attributes = attributes;
  patch->grad_enabled = new_reference(grad_enabled);
  patch->tensor = new_reference(tensor);
  return self;
}

void patch_dealloc(PyObject* self) {
  Patch* patch = as_patch(self);
  for (PyObject* object : {reinterpret_cast<PyObject*>(patch->watch), patch->wrapped, patch->twin,
                           patch->module, patch->attributes, patch->grad_enabled, patch->tensor})
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
  watch->record(What::Backward);
  watch->busy = 1;
  PyObject* result = PyObject_Call(patch->wrapped, args, kwargs);
  watch->record(What::BackwardEnd);
  watch->busy = watch->dead;
  return result;
}

// Made once: a name made for every look is hashed for every look.
PyObject *training_name, *shape_name;

// module.training; 1, 0, or -1: an exception.
int trains(const Patch* patch) {
  PyObject* own = PyDict_GetItemWithError(patch->attributes, training_name);
  if (own != nullptr) return PyObject_IsTrue(own);
  return PyErr_Occurred() != nullptr ? -1 : is_true(PyObject_GetAttr(patch->module, training_name));
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
  int counts = trains(patch);
  if (counts == 1) counts = is_true(PyObject_CallNoArgs(patch->grad_enabled));
  if (counts < 0) return nullptr;
  if (counts == 1) {
    PyObject* shape = PyObject_GetAttr(input, shape_name);
    if (shape == nullptr) {  // a nested tensor has none: the twin asks otherwise
      PyErr_Clear();
      return PyObject_Call(patch->twin, args, kwargs);
    }
    watch->record(What::Forward, shape);
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
  patch->watch->record(What::Step);
  Py_RETURN_NONE;
}

PyObject* after_step_call(PyObject* self, PyObject* args, PyObject* kwargs) {
  Patch* patch = as_patch(self);
  Watch* watch = patch->watch;
  PyObject* optimizer = PyTuple_Size(args) > 0 ? PyTuple_GetItem(args, 0) : nullptr;
  if (watch->mark != watch->clock || optimizer == nullptr) return PyObject_Call(patch->twin, args, kwargs);
  const Nanoseconds moment = watch->record(What::StepEnd, optimizer);
  ++watch->calls;
  if (moment < watch->wake && watch->calls < watch->due) Py_RETURN_NONE;
  return PyObject_CallFunctionObjArgs(patch->wrapped, optimizer, nullptr);  // probe.tick
}

// ---- the module
PyMemberDef patch_members[] = {{"__wrapped__", T_OBJECT, offsetof(Patch, wrapped), READONLY, nullptr},
                               {nullptr, 0, 0, 0, nullptr}};

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
}  // namespace batchwright::recorder

PyMODINIT_FUNC PyInit_batchwright_recorder() {
  using namespace batchwright::recorder;
  PyObject* module = PyModule_Create(&definition);
  if (module == nullptr) return nullptr;
  training_name = PyUnicode_InternFromString("training");
  shape_name = PyUnicode_InternFromString("shape");
  if (training_name != nullptr && shape_name != nullptr &&
      add_type(module, "batchwright_recorder.Watch", sizeof(Watch), 0, watch_slots) &&
      add_patch(module, "batchwright_recorder.Call", module_call, module_call_get) &&
      add_patch(module, "batchwright_recorder.Backward", backward_call) &&
      add_patch(module, "batchwright_recorder.BeforeStep", before_step_call) &&
      add_patch(module, "batchwright_recorder.AfterStep", after_step_call))
    return module;
  Py_DECREF(module);
  return nullptr;
}
