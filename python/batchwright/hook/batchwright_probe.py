"""Watches a torch training script and reports its optimizer steps by the workload protocol (src/run/protocol.h).

It only observes: no random number is drawn, no tensor is read, no gradient touched, so the script computes bit for bit
what it computes without it. The connection is opened at the first optimizer step, so processes that never train
(DataLoader workers, launchers) stay silent.
"""
import json
import os
import resource
import socket
import sys
import time

_PROTOCOL = 1


class _Channel:
    def __init__(self):
        self.rank = int(os.environ.get("RANK", "0"))
        self.world_size = int(os.environ.get("WORLD_SIZE", "1"))
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(os.environ["BATCHWRIGHT_SOCKET"])

    def say(self, **message):
        message.update(rank=self.rank, world_size=self.world_size)
        self._socket.sendall((json.dumps(message) + "\n").encode())


def _first_tensor(torch, values):
    for value in values:
        if torch.is_tensor(value) and value.dim() > 0:
            return value
        if isinstance(value, dict):
            found = _first_tensor(torch, value.values())
        elif isinstance(value, (list, tuple)):
            found = _first_tensor(torch, value)
        else:
            found = None
        if found is not None:
            return found
    return None


class _Probe:
    def __init__(self, torch):
        self.torch = torch
        self.channel = None
        self.process = os.getpid()
        self.steps = 0
        self.steps_wanted = int(os.environ.get("BATCHWRIGHT_STEPS", "0"))
        self.outermost = None
        self.depth = 0
        self.step_end = None
        self._new_window()

    def _new_window(self):
        self.forwards = self.backwards = self.examples = self.tokens = 0
        self.phases = {"forward": 0.0, "backward": 0.0, "optimizer": 0.0}
        self.begin = None

    # ---- forward
    def find_outermost(self, module, args):
        """A global hook until the first module is called for training, then only that one is watched."""
        if not (module.training and self.torch.is_grad_enabled()):
            return
        self.outermost = module
        self.finder.remove()
        module.register_forward_pre_hook(self.before_forward, with_kwargs=True)
        module.register_forward_hook(self.after_forward)
        # The hooks just added come too late for the call that is under way.
        self.before_forward(module, args, self._kwargs_of_caller())

    @staticmethod
    def _kwargs_of_caller():
        frame = sys._getframe(2)
        while frame is not None:
            if frame.f_code.co_name in ("inner", "_call_impl") and "kwargs" in frame.f_locals:
                return frame.f_locals["kwargs"]
            frame = frame.f_back
        return {}

    def before_forward(self, module, args, kwargs):
        now = time.perf_counter()
        self.depth += 1
        if self.depth > 1 or not (module.training and self.torch.is_grad_enabled()):
            return
        if self.begin is None:
            self.begin = now
        self.forward_begin = now
        self.forwards += 1
        named = kwargs.get("input_ids", kwargs.get("inputs_embeds"))
        tensor = named if self.torch.is_tensor(named) else _first_tensor(self.torch, [args, kwargs])
        if tensor is not None:
            self.examples += tensor.shape[0]
            if tensor.dim() == 2 and not tensor.is_floating_point():
                self.tokens += tensor.numel()

    def after_forward(self, module, args, output):
        self.depth = max(0, self.depth - 1)
        if self.depth == 0 and module.training and self.torch.is_grad_enabled() and self.forwards:
            self.phases["forward"] += time.perf_counter() - self.forward_begin

    # ---- backward
    def wrap_backward(self):
        original = self.torch.autograd.backward

        def backward(*args, **kwargs):
            begin = time.perf_counter()
            try:
                return original(*args, **kwargs)
            finally:
                if self.forwards:
                    self.backwards += 1
                    self.phases["backward"] += time.perf_counter() - begin

        backward.__doc__ = original.__doc__
        self.torch.autograd.backward = backward

    # ---- optimizer
    def before_step(self, optimizer, args, kwargs):
        self.optimizer_begin = time.perf_counter()

    def after_step(self, optimizer, args, kwargs):
        if not self.forwards or os.getpid() != self.process:
            return  # a second optimizer of the same step, or a forked child
        on_gpu = self.torch.cuda.is_available() and self.torch.cuda.is_initialized()
        if on_gpu:
            self.torch.cuda.synchronize()  # once a step: the step's end is when its work has ended
        now = time.perf_counter()
        self.phases["optimizer"] += now - self.optimizer_begin
        begin = self.step_end if self.step_end is not None else self.begin
        self.steps += 1
        self._report(now - begin, on_gpu)
        self.step_end = time.perf_counter()  # what reporting took is not the script's
        self._new_window()

    def _report(self, seconds, on_gpu):
        if self.channel is None:
            self.channel = _Channel()
            device = self.torch.cuda.get_device_name() if on_gpu else f"cpu, {self.torch.get_num_threads()} threads"
            self.channel.say(type="hello", protocol=_PROTOCOL, framework=f"torch {self.torch.__version__}",
                             device=device, can_resplit=False, process_id=os.getpid())
        peak = (self.torch.cuda.max_memory_allocated() if on_gpu
                else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
        # Host times of asynchronous kernels say nothing about phases.
        phases = {} if on_gpu else dict(self.phases)
        if phases:
            phases["residual"] = max(0.0, seconds - sum(phases.values()))
        self.channel.say(type="step", step=self.steps, micro_steps=self.backwards or self.forwards,
                         examples=self.examples, tokens=self.tokens, padded_tokens=self.tokens, seconds=seconds,
                         phases=phases, loss=None, grad_norm=None, peak_bytes=peak)
        if self.steps_wanted and self.steps >= self.steps_wanted:
            self.channel.say(type="done", result=None)
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)  # nothing of the script's own ending (saving, uploading) belongs to a trial


def install(torch):
    probe = _Probe(torch)
    from torch.nn.modules.module import register_module_forward_pre_hook
    from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

    probe.finder = register_module_forward_pre_hook(probe.find_outermost)
    probe.wrap_backward()
    register_optimizer_step_pre_hook(probe.before_step)
    register_optimizer_step_post_hook(probe.after_step)
