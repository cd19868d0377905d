"""Observes a torch training script and reports its optimizer steps by the workload protocol (src/run/protocol.h).

It only observes: no random number is drawn, no gradient touched and nothing is attached to a module or tensor of the
script, so the script computes bit for bit what it computes without it (`verify` alone turns dropout off, and says so).
A window is what lies between the ends of two optimizer steps; a micro-step is one backward pass in it.

While the script runs, batchwright_patches only puts moments on a tape. The tape is read, its moments are summed and the
steps are sent a few times a second, between two steps, so that a step pays for its moments and for nothing else.
"""
import atexit
import os
import sys
import time

from batchwright_channel import Channel
from batchwright_device import Cpu, Cuda

_now = time.perf_counter_ns
_FLUSH_NS = 250_000_000  # between two messages to the tuner
_LOOK_NS = 100_000_000  # between two looks at losses, norms and learning rates, which cost a step tens of microseconds
_MOST_STEPS = 250  # of one message: more would not fit into the socket, and the script would wait for the tuner


class Watch:
    """What the patches read and change inside a step that is timed: few slots, because a step pays for every look."""

    __slots__ = ("mark", "busy", "dead", "looking", "tokens", "calls", "due", "wake")

    def __init__(self, mark):
        self.mark = mark  # gives the moment that it is
        self.busy = False  # inside a backward pass: what runs there is part of it
        self.dead = False  # in a forked child, or when the tuner is gone: busy from then on
        self.looking = True  # this window's loss, gradient norm and learning rate are taken
        self.tokens = False  # the model's input is a matrix of whole numbers, as far as it was looked at
        self.calls = 0  # of optimizers and of batchwright.step(): no more steps than these can have ended
        self.due = 1  # after so many calls, or at the moment `wake`, there is more to do than to note a moment
        self.wake = 0


class Probe:
    """The tape and its reader. Entries are four items: a method of the reader, the moment, and two arguments.

    Moments are what `mark` gives: nanoseconds, or CUDA events. Their differences and sums are times of a phase.
    """

    def __init__(self, torch):
        self.torch = torch
        self.device = None
        self.watch = Watch(self._first_mark)
        self.channel = None
        self.tape = []
        self.record = self.tape.extend
        self.masks = []
        self.flushed = self.looked = 0
        self.loss_scale = None  # of a gradient scaler
        self.outermost = None
        self.evidence = None  # of `verify`
        # What the reader knows.
        self.explicit = False  # the script says itself where its steps end (batchwright.step)
        self.steps = 0
        self.steps_wanted = int(os.environ.get("BATCHWRIGHT_STEPS", "0"))
        self.begin = self.step_end = None
        self.optimizers_of_a_step = 1
        self.last_optimizer, self.last_optimizers = None, set()
        self._new_window()

    def _new_window(self):
        self.micro_steps = self.examples = self.padded = 0
        self.micro_examples = self.micro_padded = 0
        self.input = self.forward = self.backward = self.optimizer = self.collective = 0
        self.forward_begin = self.loss = self.norm_squared = self.rate = self.tokens = None
        self.optimizers = None

    def _first_mark(self):
        """Which device it is can be told at the first moment, not when torch is imported."""
        torch = self.torch
        self.device = Cuda(torch) if torch.cuda.is_available() and torch.cuda.is_initialized() else Cpu(torch)
        self.watch.mark = self.device.mark
        return self.device.mark()

    # ---- what happened, in the order of the tape
    def on_forward(self, now, shape, tokens):
        if self.forward_begin is None:
            self.forward_begin = now
            if self.begin is None:
                self.begin = now
        # One micro-step may call the model several times (two towers, time steps): they share its examples.
        if shape:
            if shape[0] > self.micro_examples:
                self.micro_examples = shape[0]
            if tokens and len(shape) == 2:
                self.micro_padded += shape[0] * shape[1]

    def on_backward(self, now, _, __):
        self.backward_begin = now
        if self.begin is None:
            self.begin = now
        if self.forward_begin is not None:
            self.forward += now - self.forward_begin
            self.forward_begin = None
        self.micro_steps += 1
        self.examples += self.micro_examples
        self.padded += self.micro_padded
        self.micro_examples = self.micro_padded = 0

    def on_backward_end(self, now, _, __):
        self.backward += now - self.backward_begin

    def on_loss(self, _, loss, __):
        self.loss = loss if self.loss is None else self.loss + loss

    def on_norm(self, _, norm, __):
        self.norm_squared = norm * norm if self.norm_squared is None else self.norm_squared + norm * norm

    def on_rate(self, _, rate, __):
        self.rate = rate

    def on_tokens(self, _, tokens, __):
        self.tokens = tokens if self.tokens is None else self.tokens + tokens

    def on_waited(self, begin, end, _):
        """For the next micro-batch, seen from the host."""
        if self.begin is not None:
            self.input += end - begin

    def on_collective(self, begin, end, _):
        if self.begin is not None or self.step_end is not None:
            self.collective += end - begin

    def on_step(self, now, _, __):
        self.optimizer_begin = now
        # Lightning runs forward and backward in a closure that it gives to optimizer.step().
        self.inside = self.forward, self.backward, self.input

    def on_step_end(self, now, optimizer, _):
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
        self.last_optimizer = optimizer
        if not self.explicit:
            self._close(now)

    def _another_optimizer(self, optimizer, now):
        """It belongs to the step that was just reported: from now on a step waits for all of them."""
        if self.steps and optimizer is not self.last_optimizer:
            self.last_optimizers |= {id(self.last_optimizer), id(optimizer)}
            self.optimizers_of_a_step = len(self.last_optimizers)
            self.step_end = now

    def on_marked(self, now, said, _):
        """batchwright.step(): from the first call on, steps end where the script says so."""
        seen_already = not self.explicit and self.steps > 0 and not self.micro_steps
        self.explicit = True
        if seen_already:
            return
        if self.begin is None:
            self.begin = self.step_end = now  # nothing of this step was seen: it starts the clock
            return
        loss, examples, tokens, micro_steps = said
        self.loss = loss if loss is not None else self.loss
        self.examples = examples if examples is not None else self.examples
        if tokens is not None:
            self.padded = self.tokens = tokens
        self.micro_steps = micro_steps or self.micro_steps
        self._close(now)

    def on_resumed(self, now, _, __):
        """What reporting took is not the script's."""
        if not self.micro_steps and self.step_end is not None:
            self.step_end = now

    def _close(self, now):
        self.steps += 1
        evidence = self.evidence.take() if self.evidence is not None else None
        begin = self.step_end if self.step_end is not None else self.begin
        tokens = self.padded if self.tokens is None else self.tokens
        self.device.rows.append((self.steps, self.micro_steps, self.examples, tokens, self.padded, now - begin,
                                 self.input, self.forward, self.backward, self.optimizer, self.collective, self.loss,
                                 self.norm_squared, self.rate, evidence))
        self._new_window()
        self.step_end = now

    # ---- reporting
    def drain(self):
        entries = iter(self.tape)
        for happened, moment, a, b in zip(entries, entries, entries, entries):
            happened(moment, a, b)
        self.tape.clear()

    def tick(self, optimizer=None):
        """After a step, when it costs the script nothing that is timed: what is not done in every step."""
        watch = self.watch
        if watch.dead:
            self.tape.clear()
            return
        now = _now()
        if self.masks:
            self._note_of_step(self.on_tokens, sum(int(mask.sum()) for mask in self.masks))
            self.masks.clear()
        if watch.looking and optimizer is not None and getattr(optimizer, "param_groups", None):
            self._note_of_step(self.on_rate, optimizer.param_groups[0].get("lr"))
        if watch.calls >= watch.due or now - self.flushed >= _FLUSH_NS:
            self.flush()
        else:
            self.record((self.on_resumed, watch.mark(), None, None))
        if watch.dead:
            return
        watch.looking = self.evidence is not None or now - self.looked >= _LOOK_NS
        if watch.looking:
            self.looked = now
        watch.wake = 0 if watch.looking else min(self.looked + _LOOK_NS, self.flushed + _FLUSH_NS)

    def _note_of_step(self, happened, value):
        """Before the entry that ended the step, which is the last one."""
        self.tape[-4:-4] = (happened, None, value, None)

    def flush(self, ending=False):
        """Reads the tape and tells the steps that it holds; ends the process after the last one that is wanted."""
        self.drain()
        last = 0 < self.steps_wanted <= self.steps
        if self.device.rows:
            self._send(ending or last or self.evidence is not None, last)
        self.flushed = _now()
        left = min(_MOST_STEPS, self.steps_wanted - self.steps) if self.steps < self.steps_wanted else _MOST_STEPS
        self.watch.due = self.watch.calls + (left if self.evidence is None else 1)
        self.record((self.on_resumed, self.watch.mark(), None, None))

    def _connect(self):
        distributed = getattr(self.torch, "distributed", None)
        if distributed is not None and distributed.is_available() and distributed.is_initialized():
            rank, world_size = distributed.get_rank(), distributed.get_world_size()
        else:
            rank, world_size = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
        self.channel = Channel(rank, world_size)
        self.channel.hello(f"torch {self.torch.__version__}", self.device.name())

    def _send(self, wait, last):
        if self.channel is None:
            self._connect()
        self.channel.send(self.device.messages(wait, self.channel.rank, self.channel.world_size))
        if not self.channel.alive:
            self.stop()
        elif last:
            self.channel.say(type="done", result=None)
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)  # nothing of the script's own ending (saving, uploading) belongs to a trial

    def mark_step(self, *said):
        """batchwright.step(loss, examples, tokens, micro_steps)"""
        watch = self.watch
        if watch.dead:
            return
        self.record((self.on_marked, watch.mark(), said, None))
        watch.calls += 1
        self.tick()

    def send_rest(self):
        """The script ends by itself: steps that are still to be told are told."""
        if not self.watch.dead and self.device is not None:
            self.flush(ending=True)

    def stop(self):
        """From now on every patch only passes on what it is given."""
        self.watch.dead = self.watch.busy = True
        self.watch.wake = 0
        self.tape.clear()


probe = None


def install(torch):
    global probe
    import batchwright_patches

    probe = Probe(torch)
    if os.environ.get("BATCHWRIGHT_EVIDENCE"):
        from batchwright_evidence import Evidence

        probe.evidence = Evidence(torch, probe)
    os.register_at_fork(after_in_child=probe.stop)
    atexit.register(probe.send_rest)
    batchwright_patches.install(torch, probe)
