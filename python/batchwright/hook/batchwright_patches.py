"""Where the probe listens in torch: each function is replaced by one that calls it and puts a moment on the probe's tape.

These functions run inside every step that is timed. What they need is bound when they are made, and they compute nothing
that can be computed when the tape is read: between two steps their code and data have left the caches, so that what counts
is how much of both they touch.
"""
import functools
import os
import sys
import time

from batchwright_watch import quick

_now = time.perf_counter_ns
_LONGEST_TAPE = 1 << 15  # entries of a script that reads data for minutes without a step


def install(torch, probe):
    _compiled(torch, probe)
    _forward(torch, probe)
    _backward(torch, probe)
    _gradient_scaler(torch, probe, *_optimizer(torch, probe))
    _clipping(torch, probe)
    _input(torch, probe)
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        _collectives(torch, probe)
    if probe.tape.evidence is not None:
        probe.tape.evidence.install()


# ---- functions that torch.compile makes
def _compiled(torch, probe):
    """What is compiled is traced, through the functions that stand here too: those of a module's call can be traced from the
    first compiled function on. A call of it is the beginning of a forward pass, and its first tensor says how many examples
    there are where no module's call does."""
    original = getattr(torch, "compile", None)
    if original is None:
        return

    @functools.wraps(original)
    def compile(model=None, *args, **kwargs):
        if model is None:
            return lambda given: compile(given, *args, **kwargs)
        made = original(model, *args, **kwargs)
        if isinstance(model, torch.nn.Module) or not callable(made):
            return made
        probe.make_traceable()
        return _watched_function(torch, probe, made)

    torch.compile = compile


def _watched_function(torch, probe, made):
    watch, happened, Tensor = probe.watch, probe.tape.on_compiled, torch.Tensor
    grad_enabled, is_compiling = torch.is_grad_enabled, _is_compiling(torch)

    @functools.wraps(made)
    def compiled(*args, **kwargs):
        if not is_compiling() and not watch.busy and grad_enabled():
            tensor = _first_tensor(Tensor, (args, kwargs))
            if tensor is not None:
                watch.record((happened, watch.mark(), _shape(tensor), None))
        return made(*args, **kwargs)

    return compiled


def _is_compiling(torch):
    """True while torch.compile traces, which takes it for a constant."""
    return getattr(getattr(torch, "compiler", None), "is_compiling", None) or (lambda: False)


# ---- forward
def _forward(torch, probe):
    """A global hook until the first module is called for training; then only calls of its class are looked at."""
    from torch.nn.modules.module import register_module_forward_pre_hook

    see, is_compiling = _see_forward(torch, probe), _is_compiling(torch)

    def find_outermost(module, args):
        if is_compiling():
            return
        if not (module.training and torch.is_grad_enabled()) or probe.watch.busy:
            return
        finder.remove()
        probe.outermost = module
        _watch(torch, probe, module, see)
        see(args, _kwargs_of_call(module))

    finder = register_module_forward_pre_hook(find_outermost)


def _watch(torch, probe, module, see):
    # On the class, not as a hook on the module: hooks are copied and pickled with it, and take a slower path.
    kind = type(module)
    original, grad_enabled, Tensor = kind.__call__, torch.is_grad_enabled, torch.Tensor
    watch, record, happened = probe.watch, probe.watch.record, probe.tape.on_forward
    is_compiling = _is_compiling(torch)

    def __call__(called, *args, **kwargs):
        if is_compiling():
            return original(called, *args, **kwargs)
        if called is module and not watch.busy and called.training and grad_enabled():
            if watch.looking or kwargs or not args or type(args[0]) is not Tensor:
                see(args, kwargs)
            else:
                try:
                    record((happened, watch.mark(), args[0].shape, watch.tokens))
                except RuntimeError:
                    see(args, kwargs)
        return original(called, *args, **kwargs)

    __call__.__wrapped__ = original
    kind.__call__ = __call__
    if not probe.traceable:
        kind.__call__ = quick("Call", watch, original, __call__, module, grad_enabled, Tensor)
        probe.make_call_traceable = lambda: setattr(kind, "__call__", __call__)


def _see_forward(torch, probe):
    """Looks for the input that says how many examples and tokens there are."""
    watch, tape, Tensor = probe.watch, probe.tape, torch.Tensor

    def see(args, kwargs):
        now = watch.mark()
        tensor = kwargs["input_ids"] if "input_ids" in kwargs else args[0] if args else None
        if not isinstance(tensor, Tensor):
            tensor = _first_tensor(Tensor, (args, kwargs))
        shape = None if tensor is None else _shape(tensor)
        watch.tokens = shape is not None and len(shape) == 2 and not tensor.is_floating_point()
        if watch.tokens and probe.device.reads_at_once:
            mask = kwargs.get("attention_mask")
            if isinstance(mask, Tensor) and mask.shape == shape:
                probe.masks.append(mask)
                watch.wake = 0  # it is counted when the step has ended
        watch.record((tape.on_forward, now, shape, watch.tokens))
        if tape.evidence is not None:
            watch.read()
            tape.evidence.before_forward(tensor, kwargs)

    return see


def _shape(tensor):
    try:
        return tensor.shape
    except RuntimeError:  # a nested tensor of rows with different lengths has none
        return (tensor.size(0),)


def _first_tensor(Tensor, values):
    for value in values:
        if isinstance(value, Tensor):
            if value.dim() > 0:
                return value
            continue
        if isinstance(value, dict):
            found = _first_tensor(Tensor, value.values())
        elif isinstance(value, (list, tuple)):
            found = _first_tensor(Tensor, value)
        else:
            found = None
        if found is not None:
            return found
    return None


def _kwargs_of_call(module):
    """The keyword arguments of the call that a global pre-hook, which is not given them, runs in."""
    frame = sys._getframe(2)
    for _ in range(6):
        if frame is None:
            break
        if frame.f_locals.get("self") is module and isinstance(frame.f_locals.get("kwargs"), dict):
            return frame.f_locals["kwargs"]
        frame = frame.f_back
    return {}


# ---- backward
def _backward(torch, probe):
    original = torch.autograd.backward
    watch, tape = probe.watch, probe.tape
    record, begins, ends = watch.record, tape.on_backward, tape.on_backward_end

    @functools.wraps(original)
    def backward(tensors, *args, **kwargs):
        if watch.busy:  # reentrant checkpointing runs a backward inside the backward
            return original(tensors, *args, **kwargs)
        record((begins, watch.mark(), None, None))
        if watch.looking:
            _look_at_loss(torch, probe, tensors)
        watch.busy = True
        try:
            return original(tensors, *args, **kwargs)
        finally:
            record((ends, watch.mark(), None, None))
            watch.busy = watch.dead
            if watch.looking and tape.evidence is not None:
                watch.read()
                tape.evidence.after_backward()

    torch.autograd.backward = quick("Backward", watch, original, backward)


def _look_at_loss(torch, probe, root):
    if torch.is_tensor(root) and root.numel() == 1:
        loss = probe.device.value(root)
        if probe.loss_scale is not None:
            loss = loss / probe.device.value(probe.loss_scale)
        probe.watch.record((probe.tape.on_loss, None, loss, None))
    if probe.tape.evidence is not None:
        probe.watch.read()
        probe.tape.evidence.before_backward(root)


# ---- optimizer
def _optimizer(torch, probe):
    from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

    watch, tape = probe.watch, probe.tape
    record, begins, ends = watch.record, tape.on_step, tape.on_step_end

    def before_step(optimizer, args, kwargs):
        record((begins, watch.mark(), None, None))

    def after_step(optimizer, args, kwargs):
        now = watch.mark()
        record((ends, now, optimizer, None))
        watch.calls += 1
        if now >= watch.wake or watch.calls >= watch.due:
            probe.tick(optimizer)

    register_optimizer_step_pre_hook(quick("BeforeStep", watch, None, before_step))
    register_optimizer_step_post_hook(quick("AfterStep", watch, probe.tick, after_step))
    return before_step, after_step


def _gradient_scaler(torch, probe, before_step, after_step):
    scaler = torch.amp.GradScaler
    original, original_scale = scaler.step, scaler.scale

    @functools.wraps(original_scale)
    def scale(self, outputs):
        result = original_scale(self, outputs)
        probe.loss_scale = self._scale
        return result

    @functools.wraps(original)
    def step(self, optimizer, *args, **kwargs):
        before = probe.watch.calls
        result = original(self, optimizer, *args, **kwargs)
        if probe.watch.calls == before:  # it met infinities: the window is over, though nothing was updated
            before_step(optimizer, (), {})
            after_step(optimizer, (), {})
        return result

    scaler.step, scaler.scale = step, scale


def _clipping(torch, probe):
    original = torch.nn.utils.clip_grad_norm_

    @functools.wraps(original)
    def clip_grad_norm_(*args, **kwargs):
        if probe.tape.evidence is not None:
            probe.tape.evidence.before_clipping()
        norm = original(*args, **kwargs)
        if probe.watch.looking and not probe.watch.dead and probe.device is not None and torch.is_tensor(norm):
            probe.watch.record((probe.tape.on_norm, None, probe.device.value(norm), None))
        return norm

    torch.nn.utils.clip_grad_norm_ = torch.nn.utils.clip_grad.clip_grad_norm_ = clip_grad_norm_


# ---- input, collectives
def _input(torch, probe):
    import torch.utils.data.dataloader as dataloader

    kind = dataloader._BaseDataLoaderIter
    original, watch = kind.__next__, probe.watch
    record, happened = watch.record, probe.tape.on_waited

    @functools.wraps(original)
    def __next__(self):
        begin = _now()
        try:
            return original(self)
        finally:
            record((happened, begin, _now(), None))
            if len(watch) > _LONGEST_TAPE:
                watch.clear() if watch.dead else watch.read()

    kind.__next__ = __next__


_COLLECTIVES = ("all_reduce", "all_gather", "all_gather_into_tensor", "all_gather_object", "reduce_scatter",
                "reduce_scatter_tensor", "broadcast", "reduce", "barrier")


def _collectives(torch, probe):
    """The script's own collectives. What DistributedDataParallel overlaps with the backward pass is part of that."""
    import torch.distributed as distributed

    def timed(original):
        @functools.wraps(original)
        def collective(*args, **kwargs):
            begin = _now()
            try:
                return original(*args, **kwargs)
            finally:
                if not probe.watch.busy:
                    probe.watch.record((probe.tape.on_collective, begin, _now(), None))
        return collective

    for name in _COLLECTIVES:
        if hasattr(distributed, name):
            setattr(distributed, name, timed(getattr(distributed, name)))
