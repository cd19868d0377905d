"""Where the probe listens in torch: each function is replaced by one that calls it and tells the probe."""
import functools
import os
import time

_now = time.perf_counter_ns


def install(torch, probe):
    _backward(torch, probe)
    _optimizer(torch, probe)
    _gradient_scaler(torch, probe)
    _clipping(torch, probe)
    _input(torch, probe)
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        _collectives(torch, probe)
    if probe.evidence is not None:
        probe.evidence.install()


def _backward(torch, probe):
    original = torch.autograd.backward

    @functools.wraps(original)
    def backward(tensors, *args, **kwargs):
        if probe.in_backward:  # reentrant checkpointing runs a backward inside the backward
            return original(tensors, *args, **kwargs)
        probe.before_backward(tensors)
        probe.in_backward = True
        try:
            return original(tensors, *args, **kwargs)
        finally:
            probe.in_backward = False
            probe.after_backward()

    torch.autograd.backward = backward


def _optimizer(torch, probe):
    from torch.nn.modules.module import register_module_forward_pre_hook
    from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

    probe.finder = register_module_forward_pre_hook(probe.find_outermost)
    register_optimizer_step_pre_hook(probe.before_step)
    register_optimizer_step_post_hook(probe.after_step)


def _gradient_scaler(torch, probe):
    scaler = torch.amp.GradScaler
    original, original_scale = scaler.step, scaler.scale

    @functools.wraps(original_scale)
    def scale(self, outputs):
        result = original_scale(self, outputs)
        probe.loss_scale = self._scale
        return result

    @functools.wraps(original)
    def step(self, optimizer, *args, **kwargs):
        before = probe.optimizer_calls
        result = original(self, optimizer, *args, **kwargs)
        if probe.optimizer_calls == before:
            probe.skipped_step(optimizer)
        return result

    scaler.step, scaler.scale = step, scale


def _clipping(torch, probe):
    original = torch.nn.utils.clip_grad_norm_

    @functools.wraps(original)
    def clip_grad_norm_(*args, **kwargs):
        if probe.evidence is not None:
            probe.evidence.before_clipping()
        norm = original(*args, **kwargs)
        probe.clipped(norm)
        return norm

    torch.nn.utils.clip_grad_norm_ = torch.nn.utils.clip_grad.clip_grad_norm_ = clip_grad_norm_


def _input(torch, probe):
    import torch.utils.data.dataloader as dataloader

    kind = dataloader._BaseDataLoaderIter
    original = kind.__next__

    @functools.wraps(original)
    def __next__(self):
        begin = _now()
        try:
            return original(self)
        finally:
            probe.waited(begin, _now())

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
                if not probe.in_backward and (probe.begin is not None or probe.step_end is not None):
                    probe.collective += _now() - begin
        return collective

    for name in _COLLECTIVES:
        if hasattr(distributed, name):
            setattr(distributed, name, timed(getattr(distributed, name)))
