"""Watches a torch training script and reports its optimizer steps by the workload protocol (src/run/protocol.h).

It only observes: no random number is drawn, no gradient touched and nothing is attached to a module or tensor of the
script, so the script computes bit for bit what it computes without it (`verify` alone turns dropout off, and says so).
A window is what lies between the ends of two optimizer steps; a micro-step is one backward pass in it.
"""
import atexit
import os
import sys
import time

from batchwright_channel import Channel
from batchwright_device import Cpu, Cuda

_now = time.perf_counter_ns
_FLUSH_NS = 20_000_000  # between two messages to the tuner
_LOOK_NS = 1_000_000  # between two looks at losses and norms


def _first_tensor(torch, values):
    for value in values:
        if torch.is_tensor(value):
            if value.dim() > 0:
                return value
            continue
        if isinstance(value, dict):
            found = _first_tensor(torch, value.values())
        elif isinstance(value, (list, tuple)):
            found = _first_tensor(torch, value)
        else:
            found = None
        if found is not None:
            return found
    return None


class Probe:
    """Moments are what `mark` gives: nanoseconds, or CUDA events. Their differences and sums are times of a phase."""

    def __init__(self, torch):
        self.torch = torch
        self.is_tensor, self.grad_enabled = torch.is_tensor, torch.is_grad_enabled
        self.mark = _now
        self.device = None  # known at the first forward pass
        self.channel = None
        self.dead = False  # in a forked child, or when the tuner is gone
        self.explicit = False  # the script says itself where its steps end (batchwright.step)
        self.evidence = None  # of `verify`
        self.loss_scale = None  # of a gradient scaler
        self.steps = 0
        self.steps_wanted = int(os.environ.get("BATCHWRIGHT_STEPS", "0"))
        self.outermost = None
        self.in_backward = False
        self.begin = self.step_end = None
        self.optimizer_calls = 0
        self.optimizers_of_a_step = 1
        self.last_optimizer, self.last_optimizers = None, set()
        self.looks = True
        self.flushed = self.looked = 0
        self._new_window()

    def _new_window(self):
        self.micro_steps = self.examples = self.tokens = 0
        self.micro_examples = self.micro_tokens = 0
        self.input = self.forward = self.backward = self.optimizer = self.collective = 0
        self.forward_begin = self.loss = self.norm_squared = self.masks = None
        self.optimizers = None

    # ---- forward
    def find_outermost(self, module, args):
        """A global hook until the first module is called for training; then only calls of its class are looked at."""
        if not (module.training and self.grad_enabled()) or self.in_backward:
            return
        self.finder.remove()
        self._watch(module)
        self.before_forward(args, _kwargs_of_call(module))

    def _watch(self, module):
        # On the class, not as a hook on the module: hooks are copied and pickled with it, and take a slower path.
        self.outermost = module
        kind = type(module)
        original, before_forward, grad_enabled = kind.__call__, self.before_forward, self.grad_enabled

        def __call__(called, *args, **kwargs):
            if called is module and called.training and grad_enabled() and not self.in_backward:
                before_forward(args, kwargs)
            return original(called, *args, **kwargs)

        __call__.__wrapped__ = original
        kind.__call__ = __call__

    def before_forward(self, args, kwargs):
        if self.dead:
            return
        if self.device is None:
            self._choose_device()
        if self.forward_begin is None:
            self.forward_begin = self.mark()
            if self.begin is None:
                self.begin = self.forward_begin
        if kwargs and "input_ids" in kwargs:
            tensor = kwargs["input_ids"]
        else:
            tensor = args[0] if args else None
        if not self.is_tensor(tensor):
            tensor = _first_tensor(self.torch, [args, kwargs])
        if tensor is not None:
            shape = tensor.shape
            # One micro-step may call the model several times (two towers, time steps): they share its examples.
            if shape and shape[0] > self.micro_examples:
                self.micro_examples = shape[0]
            if len(shape) == 2 and not tensor.is_floating_point():
                self.micro_tokens += shape[0] * shape[1]
                mask = kwargs.get("attention_mask") if kwargs else None
                if mask is not None and self.device.reads_at_once and mask.shape == shape:
                    self.masks = [mask] if self.masks is None else self.masks + [mask]
        if self.evidence is not None:
            self.evidence.before_forward(tensor, kwargs)

    def _choose_device(self):
        torch = self.torch
        self.device = Cuda(torch) if torch.cuda.is_available() and torch.cuda.is_initialized() else Cpu(torch)
        self.mark = self.device.mark

    # ---- backward
    def before_backward(self, root):
        if self.dead:
            return
        if self.device is None:
            self._choose_device()
        now = self.backward_begin = self.mark()
        if self.begin is None:
            self.begin = now
        if self.forward_begin is not None:
            self.forward += now - self.forward_begin
            self.forward_begin = None
        self.micro_steps += 1
        self.examples += self.micro_examples
        self.tokens += self.micro_tokens
        self.micro_examples = self.micro_tokens = 0
        # A value costs a look at a tensor: in a loop of steps below a millisecond only some of them are taken.
        if self.looks and self.is_tensor(root) and root.numel() == 1:
            loss = self.device.value(root)
            if self.loss_scale is not None:
                loss = loss / self.device.value(self.loss_scale)
            self.loss = loss if self.loss is None else self.loss + loss
        if self.evidence is not None:
            self.evidence.before_backward(root)

    def after_backward(self):
        if self.dead:
            return
        self.backward += self.mark() - self.backward_begin
        if self.evidence is not None:
            self.evidence.after_backward()

    # ---- input, clipping
    def waited(self, begin, end):
        """For the next micro-batch, seen from the host."""
        if self.begin is not None:
            self.input += end - begin

    def clipped(self, norm):
        if self.looks and self.device is not None and self.is_tensor(norm):
            value = self.device.value(norm)
            self.norm_squared = value * value if self.norm_squared is None else self.norm_squared + value * value

    # ---- optimizer
    def before_step(self, optimizer, args, kwargs):
        if self.device is None:
            self._choose_device()
        self.optimizer_begin = self.mark()
        # Lightning runs forward and backward in a closure that it gives to optimizer.step().
        self.inside = self.forward, self.backward, self.input

    def after_step(self, optimizer, args, kwargs):
        self.optimizer_calls += 1
        if self.dead:
            return
        now = self.mark()
        if not self.micro_steps:
            self._another_optimizer(optimizer, now)
            return
        self.optimizer += now - self.optimizer_begin
        forward, backward, waited = self.inside
        if self.backward is not backward:
            self.optimizer -= (self.forward - forward) + (self.backward - backward) + (self.input - waited)
        if self.optimizers_of_a_step > 1:
            self.optimizers = {id(optimizer)} if self.optimizers is None else self.optimizers | {id(optimizer)}
            if len(self.optimizers) < self.optimizers_of_a_step:
                return
        if not self.explicit:
            self.close(now, optimizer)
        else:
            self.last_optimizer = optimizer

    def _another_optimizer(self, optimizer, now):
        """It belongs to the step that was just reported: from now on a step waits for all of them."""
        if self.steps and optimizer is not self.last_optimizer:
            self.last_optimizers |= {id(self.last_optimizer), id(optimizer)}
            self.optimizers_of_a_step = len(self.last_optimizers)
            self.step_end = now

    def skipped_step(self, optimizer):
        """A gradient scaler met infinities: the window is over, though nothing was updated."""
        if self.micro_steps:
            self.before_step(optimizer, (), {})
            self.after_step(optimizer, (), {})
            self.optimizer_calls -= 1

    def mark_step(self, loss, examples, tokens, micro_steps):
        """batchwright.step(): from the first call on, steps end where the script says so."""
        if self.dead:
            return
        if self.device is None:
            self._choose_device()
        seen_already = not self.explicit and self.steps > 0 and not self.micro_steps
        self.explicit = True
        if seen_already:
            return
        now = self.mark()
        if self.begin is None:
            self.begin = self.step_end = now  # nothing of this step was seen: it starts the clock
            return
        self.loss = loss if loss is not None else self.loss
        self.examples = examples if examples is not None else self.examples
        self.tokens = tokens if tokens is not None else self.tokens
        self.micro_steps = micro_steps or self.micro_steps
        self.close(now, self.last_optimizer)

    def close(self, now, optimizer):
        self.steps += 1
        self.last_optimizer = optimizer
        evidence = self.evidence.take() if self.evidence is not None else None
        begin = self.step_end if self.step_end is not None else self.begin
        self.device.rows.append((self.steps, self.micro_steps, self.examples, self.tokens, self.masks, now - begin,
                                 self.input, self.forward, self.backward, self.optimizer, self.collective, self.loss,
                                 self.norm_squared, evidence))
        last = self.steps == self.steps_wanted
        host = _now()
        if last or host - self.flushed > _FLUSH_NS or evidence is not None:
            self._send(last)
            self.flushed = _now()
        self.looks = host - self.looked > _LOOK_NS
        if self.looks:
            self.looked = host
        self._new_window()
        # What reporting took is not the script's.
        self.step_end = self.mark()

    # ---- reporting
    def _connect(self):
        distributed = getattr(self.torch, "distributed", None)
        if distributed is not None and distributed.is_available() and distributed.is_initialized():
            rank, world_size = distributed.get_rank(), distributed.get_world_size()
        else:
            rank, world_size = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
        self.channel = Channel(rank, world_size)
        self.channel.hello(f"torch {self.torch.__version__}", self.device.name())

    def _send(self, wait):
        if self.channel is None:
            self._connect()
        groups = getattr(self.last_optimizer, "param_groups", None)
        rate = groups[0].get("lr") if groups else None
        self.channel.put(self.device.messages(wait, rate, self.channel.rank, self.channel.world_size))
        self.channel.flush()
        self.dead = not self.channel.alive
        if self.steps == self.steps_wanted and not self.dead:
            self.channel.say(type="done", result=None)
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)  # nothing of the script's own ending (saving, uploading) belongs to a trial

    def send_rest(self):
        """The script ends by itself: steps that are still to be told are told."""
        if not self.dead and self.device is not None and self.device.rows:
            self._send(True)

    def forget_in_child(self):
        self.dead = True


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


probe = None


def install(torch):
    global probe
    import batchwright_patches

    probe = Probe(torch)
    if os.environ.get("BATCHWRIGHT_EVIDENCE"):
        from batchwright_evidence import Evidence

        probe.evidence = Evidence(torch, probe)
    os.register_at_fork(after_in_child=probe.forget_in_child)
    atexit.register(probe.send_rest)
    batchwright_patches.install(torch, probe)
