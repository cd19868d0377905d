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
from batchwright_tape import Tape
from batchwright_watch import watch

_now = time.perf_counter_ns
_FLUSH_NS = 250_000_000  # between two messages to the tuner
_LOOK_NS = 100_000_000  # between two looks at losses, norms and learning rates, which cost a step tens of microseconds
_MOST_STEPS = 250  # of one message: more would not fit into the socket, and the script would wait for the tuner


class Probe:
    """Knows when the tape is read, and tells what it held."""

    def __init__(self, torch):
        self.torch = torch
        self.tape = Tape()
        self.watch = watch(self._first_mark, self.tape)
        self.device = None
        self.channel = None
        self.steps_wanted = int(os.environ.get("BATCHWRIGHT_STEPS", "0"))
        self.flushed = self.looked = 0
        # What the patches leave here.
        self.masks = []
        self.loss_scale = None  # of a gradient scaler
        self.outermost = None
        self.traceable = False  # what stands in a module's call is Python, because torch.compile may trace it
        self.make_call_traceable = None

    def _first_mark(self):
        """Which device it is can be told at the first moment, not when torch is imported."""
        torch = self.torch
        self.device = Cuda(torch) if torch.cuda.is_available() and torch.cuda.is_initialized() else Cpu(torch)
        self.tape.device = self.device
        self.watch.mark = self.device.mark
        return self.device.mark()

    def tick(self, optimizer=None):
        """After a step, when it costs the script nothing that is timed: what is not done in every step."""
        watch, tape = self.watch, self.tape
        if watch.dead:
            watch.clear()
            return
        now = _now()
        if self.masks:
            watch.record_before_last((tape.on_tokens, None, sum(int(mask.sum()) for mask in self.masks), None))
            self.masks.clear()
        if watch.looking and optimizer is not None and getattr(optimizer, "param_groups", None):
            watch.record_before_last((tape.on_rate, None, optimizer.param_groups[0].get("lr"), None))
        if watch.calls >= watch.due or now - self.flushed >= _FLUSH_NS:
            self.flush()
        else:
            watch.record((tape.on_resumed, watch.mark(), None, None))
        if watch.dead:
            return
        watch.looking = tape.evidence is not None or now - self.looked >= _LOOK_NS
        if watch.looking:
            self.looked = now
        watch.wake = 0 if watch.looking else min(self.looked + _LOOK_NS, self.flushed + _FLUSH_NS)

    def make_traceable(self):
        self.traceable = True
        if self.make_call_traceable is not None:
            self.make_call_traceable()
            self.make_call_traceable = None

    def flush(self, ending=False):
        """Reads the tape and tells the steps that it holds; ends the process after the last one that is wanted."""
        tape, wanted = self.tape, self.steps_wanted
        self.watch.read()
        last = 0 < wanted <= tape.steps
        if self.device.rows:
            self._send(ending or last or tape.evidence is not None, last)
        self.flushed = _now()
        left = min(_MOST_STEPS, wanted - tape.steps) if tape.steps < wanted else _MOST_STEPS
        self.watch.due = self.watch.calls + (left if tape.evidence is None else 1)
        self.watch.record((tape.on_resumed, self.watch.mark(), None, None))

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
        watch.record((self.tape.on_marked, watch.mark(), said, None))
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
        self.watch.clear()


probe = None


def install(torch):
    global probe
    import batchwright_patches

    probe = Probe(torch)
    if os.environ.get("BATCHWRIGHT_EVIDENCE"):
        from batchwright_evidence import Evidence

        probe.tape.evidence = Evidence(torch, probe)
    os.register_at_fork(after_in_child=probe.stop)
    atexit.register(probe.send_rest)
    batchwright_patches.install(torch, probe)
