"""What the patches read and write inside a step that is timed, in Python or, where it loads, in machine code
(batchwright_recorder.cc), which also has for each patch a callable that does what the patch does in a plain step.
"""
import importlib.machinery
import importlib.util
import os
import time


class Watch:
    """Few slots, because a step pays for every look.

    The tape is a flat list, four items an entry: what to call when it is read, and its three arguments, of which the first
    is a moment.
    """

    __slots__ = ("mark", "busy", "dead", "looking", "tokens", "calls", "due", "wake", "entries", "record")

    def __init__(self, mark):
        self.mark = mark  # gives the moment that it is
        self.busy = False  # inside a backward pass: what runs there is part of it
        self.dead = False  # in a forked child, or when the tuner is gone: busy from then on
        self.looking = True  # this window's loss, gradient norm and learning rate are taken
        self.tokens = False  # the model's input is a matrix of whole numbers, as far as it was looked at
        self.calls = 0  # of optimizers and of batchwright.step(): no more steps than these can have ended
        self.due = 1  # after so many calls, or at the moment `wake`, there is more to do than to note a moment
        self.wake = 0
        self.entries = []
        self.record = self.entries.extend

    def __len__(self):
        return len(self.entries) // 4

    def record_before_last(self, entry):
        self.entries[-4:-4] = entry

    def read(self):
        entries = iter(self.entries)
        for happened, moment, a, b in zip(entries, entries, entries, entries):
            happened(moment, a, b)
        self.entries.clear()

    def clear(self):
        self.entries.clear()


def _recorder():
    """None where there is none for this Python, or on a system whose clock it does not know."""
    path = os.environ.get("BATCHWRIGHT_RECORDER")
    if not path or time.get_clock_info("perf_counter").implementation != "clock_gettime(CLOCK_MONOTONIC)":
        return None
    loader = importlib.machinery.ExtensionFileLoader("batchwright_recorder", path)
    try:
        module = importlib.util.module_from_spec(importlib.util.spec_from_loader("batchwright_recorder", loader))
        loader.exec_module(module)
    except (ImportError, OSError):
        return None
    return module


recorder = _recorder()


def watch(mark, tape):
    return Watch(mark) if recorder is None else recorder.Watch(mark, time.perf_counter_ns, tape)


def quick(kind, watch, replaced, patch, *more):
    """The recorder's callable of this kind in front of `patch`, which it calls in a step that is not plain; else `patch`."""
    return patch if recorder is None else getattr(recorder, kind)(watch, replaced, patch, *more)
