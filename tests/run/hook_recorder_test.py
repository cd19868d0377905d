"""The recorder in machine code against its Python twin: the same tape from the same calls, and nothing kept alive."""
import pathlib
import random
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python" / "batchwright" / "hook"))
import batchwright_watch  # noqa: E402
from batchwright_tape import Tape  # noqa: E402

recorder = batchwright_watch.recorder


class Log:
    """What entries call, and a tape that takes no whole window. A moment is compared by its kind and its order only."""

    def __init__(self):
        self.seen = []

    def happened(self, moment, a, b):
        self.seen.append((type(moment).__name__, a, b))

    on_forward = on_backward = on_backward_end = on_step = on_step_end = happened

    def begins_window(self):
        return False

    def on_window(self, *_):
        raise AssertionError("it did not ask for one")


def recorded(tape):
    return recorder.Watch(time.perf_counter_ns, time.perf_counter_ns, tape)


def both(log):
    return batchwright_watch.Watch(time.perf_counter_ns), recorded(log)


def check_entries():
    results = []
    for number in range(2):
        random.seed(1)
        log = Log()
        watch = both(log)[number]
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

    watch = recorded(Log())
    watch.record((fails, None, None, None))
    watch.record((fails, None, None, None))
    try:
        watch.read()
    except ValueError:
        assert len(watch) == 0
    else:
        raise AssertionError("the exception was lost")


def check_members():
    for watch in both(Log()):
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


def patched(watch, twin_calls, enabled):
    """A class whose calls are watched, as batchwright_patches does it."""
    kind = type("Watched", (Model,), {"__call__": Model.__call__})
    module, original = kind(), kind.__call__

    def twin(called, *args, **kwargs):
        twin_calls.append((args, kwargs))
        return original(called, *args, **kwargs)

    kind.__call__ = recorder.Call(watch, original, twin, module, lambda: enabled[0], Tensor)
    return kind, module


def check_call():
    log, twin_calls, enabled = Log(), [], [True]
    watch = recorded(log)
    kind, module = patched(watch, twin_calls, enabled)
    tensor, other = Tensor(), kind()
    assert module(tensor) == ((tensor,), {}) and len(twin_calls) == 1, "the first steps are looked at"
    watch.looking = False
    assert module(tensor) == ((tensor,), {}) and kind.__call__(module, tensor) == ((tensor,), {})
    assert module.__call__(tensor) == ((tensor,), {}), "it binds as a function does"
    assert len(twin_calls) == 1 and len(watch) == 3
    assert module(tensor, mask=1) == ((tensor,), {"mask": 1}) and module(1) == ((1,), {}) and module() == ((), {})
    assert len(twin_calls) == 4, "what is not one plain tensor is the twin's"
    assert other(tensor) == ((tensor,), {}) and len(watch) == 3, "another module of the class is left alone"
    shape, Tensor.shape = Tensor.shape, property(lambda _: 1 / 0)  # as a nested tensor's
    assert module(tensor) == ((tensor,), {}) and len(twin_calls) == 5 and len(watch) == 3, "the twin knows what to do"
    Tensor.shape = shape
    twin_calls.pop()
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
    log, twin_calls = Log(), []
    watch = recorded(log)

    def original(value, grow=0):
        assert watch.busy
        if value == "fail":
            raise ValueError(value)
        return value + grow

    def twin(*args, **kwargs):
        twin_calls.append(args)

    backward = recorder.Backward(watch, original, twin)
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
    log, ticks = Log(), []
    watch = recorded(log)

    def twin(*args):
        raise AssertionError("a plain step needs no Python")

    before = recorder.BeforeStep(watch, None, twin)
    after = recorder.AfterStep(watch, ticks.append, twin)
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
    tensor, log = Tensor(), Log()
    watch = recorded(log)
    kind, module = patched(watch, [], [True])
    watch.looking = False
    held = sys.getrefcount(tensor), sys.getrefcount(log), sys.getrefcount(None)
    for _ in range(1000):
        module(tensor)
        watch.record((len, None, tensor, log))
        watch.clear() if _ % 2 else watch.record((log.happened, None, tensor, log))
    watch.clear()
    for _ in range(1000):
        module(tensor)
    watch.read()
    log.seen.clear()
    left = sys.getrefcount(tensor), sys.getrefcount(log), sys.getrefcount(None)
    assert left[:2] == held[:2] and abs(left[2] - held[2]) < 500, (held, left)


class Rows:
    def __init__(self):
        self.rows = []


class WindowByWindow(Tape):
    """Takes whole windows where it can; counts them."""

    __slots__ = ("windows",)

    def on_window(self, *told):
        self.windows += 1
        super().on_window(*told)


class EntryByEntry(Tape):
    __slots__ = ()

    def begins_window(self):
        return False


class Training:
    """A made training, recorded on a tape; everything that happens takes as long on every tape."""

    def __init__(self, tape):
        self.tape, tape.device = tape, Rows()
        self.watch = recorded(tape)
        self.watch.looking, self.watch.due, self.watch.wake = False, 1 << 60, 1 << 62
        self.kind, self.model = patched(self.watch, [], [True])
        self.backward = recorder.Backward(self.watch, self.spend, None)
        self.before = recorder.BeforeStep(self.watch, None, None)
        self.after = recorder.AfterStep(self.watch, None, None)

    @staticmethod
    def spend(seconds):
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            pass

    def run(self, windows):
        for number in range(windows):
            for _ in range(random.randint(1, 3)):
                if random.random() < 0.2:
                    begin = time.perf_counter_ns()
                    self.spend(0.001)
                    self.watch.record((self.tape.on_waited, begin, time.perf_counter_ns(), None))
                for _ in range(random.choice((1, 1, 1, 2, 0))):
                    tensor = Tensor()
                    tensor.shape = random.choice(((4, 7), (2, 9), (3,), (), (2, 3, 4)))
                    self.watch.tokens = random.random() < 0.5
                    self.model(tensor)
                    self.spend(0.001 * random.randint(1, 3))
                if random.random() < 0.1:
                    self.watch.record((self.tape.on_loss, None, 0.5, None))
                self.backward(0.001 * random.randint(1, 3))
            for _ in range(random.choice((1, 1, 1, 1, 2 if number > 40 else 1))):
                optimizer = "another" if number > 50 and _ else "optimizer"
                self.before(optimizer, (), {})
                self.spend(0.001)
                self.after(optimizer, (), {})
            if random.random() < 0.2:
                self.watch.record((self.tape.on_resumed, time.perf_counter_ns(), None, None))
            if random.random() < 0.3:
                self.watch.read()
        self.watch.read()
        return self.tape.device.rows


def check_windows_are_what_their_entries_are():
    tapes = WindowByWindow(), EntryByEntry()
    tapes[0].windows = 0
    rows = []
    for tape in tapes:
        random.seed(3)
        rows.append(Training(tape).run(70))
    assert 20 < tapes[0].windows < len(rows[0]), (tapes[0].windows, len(rows[0]))
    assert len(rows[0]) == len(rows[1])
    agree = []
    for ours, theirs in zip(*rows):
        assert ours[:5] == theirs[:5] and ours[11:] == theirs[11:], (ours, theirs)
        assert sum(ours[6:10]) <= ours[5]
        agree += [abs(a - b) < 300_000 for a, b in zip(ours[5:10], theirs[5:10])]
    # The times of one training, measured twice on a machine that may be busy.
    assert sum(agree) > 0.6 * len(agree), (sum(agree), len(agree))


if recorder is None:
    sys.exit("the recorder did not load")
for name, check in list(globals().items()):
    if name.startswith("check_"):
        check()
