"""The recorder in machine code against its Python twin: the same tape from the same calls, and nothing kept alive."""
import pathlib
import random
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python" / "batchwright" / "hook"))
import batchwright_watch  # noqa: E402

recorder = batchwright_watch.recorder


class Log:
    """What entries call. A moment is compared by its kind and its order only."""

    def __init__(self):
        self.seen = []

    def happened(self, moment, a, b):
        self.seen.append((type(moment).__name__, a, b))


def both():
    return batchwright_watch.Watch(time.perf_counter_ns), recorder.Watch(time.perf_counter_ns, time.perf_counter_ns)


def check_entries():
    results = []
    for watch in both():
        random.seed(1)
        log = Log()
        for number in range(500):
            choice = random.random()
            if choice < 0.6:
                watch.record((log.happened, watch.mark(), number, None))
            elif choice < 0.9:
                watch.record_before_last((log.happened, None, None, number))
            elif choice < 0.97:
                watch.read()
            else:
                watch.clear()
            log.seen.append(len(watch))
        watch.read()
        results.append((log.seen, len(watch)))
    assert results[0] == results[1]
    assert results[0][1] == 0


def check_an_entry_that_raises():
    def fails(moment, a, b):
        raise ValueError("on purpose")

    watch = both()[1]
    watch.record((fails, None, None, None))
    watch.record((fails, None, None, None))
    try:
        watch.read()
    except ValueError:
        assert len(watch) == 0
    else:
        raise AssertionError("the exception was lost")


def check_members():
    for watch in both():
        assert (watch.busy, watch.dead, watch.looking, watch.tokens) == (False, False, True, False)
        assert (watch.calls, watch.due, watch.wake) == (0, 1, 0)
        watch.wake, watch.busy = 1 << 60, True
        assert watch.wake == 1 << 60 and watch.busy is True


class Model:
    training = True

    def __call__(self, *args, **kwargs):
        return args, kwargs


class Tensor:
    shape = (4, 7)


def patched(watch, log, twin_calls, enabled):
    """A class whose calls are watched, as batchwright_patches does it."""
    kind = type("Watched", (Model,), {"__call__": Model.__call__})
    module, original = kind(), kind.__call__

    def twin(called, *args, **kwargs):
        twin_calls.append((args, kwargs))
        return original(called, *args, **kwargs)

    kind.__call__ = recorder.Call(watch, original, twin, log.happened, None, module, lambda: enabled[0], Tensor)
    return kind, module


def check_call():
    watch, log, twin_calls, enabled = both()[1], Log(), [], [True]
    kind, module = patched(watch, log, twin_calls, enabled)
    tensor, other = Tensor(), kind()
    assert module(tensor) == ((tensor,), {}) and len(twin_calls) == 1, "the first steps are looked at"
    watch.looking = False
    assert module(tensor) == ((tensor,), {}) and kind.__call__(module, tensor) == ((tensor,), {})
    assert module.__call__(tensor) == ((tensor,), {}), "it binds as a function does"
    assert len(twin_calls) == 1 and len(watch) == 3
    assert module(tensor, mask=1) == ((tensor,), {"mask": 1}) and module(1) == ((1,), {}) and module() == ((), {})
    assert len(twin_calls) == 4, "what is not one plain tensor is the twin's"
    assert other(tensor) == ((tensor,), {}) and len(watch) == 3, "another module of the class is left alone"
    enabled[0] = False
    module(tensor)
    enabled[0], module.training = True, False
    module(tensor)
    watch.busy = True
    module.training = True
    module(tensor)
    assert len(watch) == 3 and len(twin_calls) == 4
    watch.read()
    assert log.seen == [("int", (4, 7), False)] * 3
    assert kind.__call__.__name__ == "__call__" and kind.__call__.__wrapped__ is Model.__call__


def check_backward():
    watch, log, twin_calls = both()[1], Log(), []

    def original(value, grow=0):
        assert watch.busy
        if value == "fail":
            raise ValueError(value)
        return value + grow

    def twin(*args, **kwargs):
        twin_calls.append(args)

    backward = recorder.Backward(watch, original, twin, log.happened, log.happened)
    backward(1)
    assert len(twin_calls) == 1 and len(watch) == 0
    watch.looking = False
    assert backward(1, grow=2) == 3 and len(watch) == 2 and not watch.busy
    try:
        backward("fail")
    except ValueError:
        assert len(watch) == 4 and not watch.busy
    else:
        raise AssertionError("the exception was lost")
    watch.busy = True  # a backward inside a backward
    assert backward(5) == 5 and len(watch) == 4
    watch.busy, watch.mark = False, lambda: "an event"
    backward(1)
    assert len(twin_calls) == 2, "moments that are no nanoseconds are the twin's"


def check_steps():
    watch, log, ticks = both()[1], Log(), []

    def twin(*args):
        raise AssertionError("a plain step needs no Python")

    before = recorder.BeforeStep(watch, None, twin, log.happened)
    after = recorder.AfterStep(watch, ticks.append, twin, log.happened)
    watch.wake, watch.due = time.perf_counter_ns() + 10**15, 3
    for expected in ([], [], ["optimizer"]):
        before("optimizer", (), {})
        after("optimizer", (), {})
        assert ticks == expected
    watch.wake, watch.due = 0, 100
    after("another", (), {})
    assert ticks == ["optimizer", "another"] and watch.calls == 4
    watch.read()
    assert log.seen[:2] == [("int", None, None), ("int", "optimizer", None)]


def check_nothing_is_kept():
    tensor, watch, log = Tensor(), both()[1], Log()
    kind, module = patched(watch, log, [], [True])
    watch.looking = False
    held = sys.getrefcount(tensor), sys.getrefcount(log), sys.getrefcount(None)
    for _ in range(1000):
        module(tensor)
        watch.record((len, None, tensor, log))
        watch.clear()
    left = sys.getrefcount(tensor), sys.getrefcount(log), sys.getrefcount(None)
    assert left[:2] == held[:2] and abs(left[2] - held[2]) < 500, (held, left)


if recorder is None:
    sys.exit("the recorder did not load")
for name, check in list(globals().items()):
    if name.startswith("check_"):
        check()
