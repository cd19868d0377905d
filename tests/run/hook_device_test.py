"""The hook's CUDA times, from events that a test plays: what becomes of moments, and that nothing waits for the device."""
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python" / "batchwright" / "hook"))
from batchwright_device import Cuda, Moment  # noqa: E402


class Event:
    def __init__(self, milliseconds):
        self.milliseconds, self.happened, self.waited_for = milliseconds, False, False

    def elapsed_time(self, later):
        assert self.happened and later.happened, "CUDA refuses times of events that have not happened"
        return later.milliseconds - self.milliseconds

    def query(self):
        return self.happened

    def synchronize(self):
        self.happened = self.waited_for = True


class Torch:
    class cuda:
        @staticmethod
        def max_memory_allocated():
            return 7


def row_of(case, step=1):
    """As the probe collects it: sums of differences of moments."""
    moments = [(name, Moment(Event(device), host * 1000)) for name, device, host in case["marks"]]
    sums, begin = {"forward": 0, "backward": 0, "optimizer": 0}, {}
    for name, moment in moments:
        if name == "backward":
            sums["forward"] += moment - begin["forward"]
        if name.endswith("_end"):
            sums[name[:-4]] += moment - begin[name[:-4]]
        begin[name] = moment
    whole = moments[-1][1] - moments[0][1]
    row = (step, 2, 16, 256, 256, whole, case["waited_us"] * 1000, sums["forward"], sums["backward"], sums["optimizer"], 0,
           0.5, 4.0, None, None)
    return row, [moment.event for _, moment in moments]


def near(a, b):
    return abs(a - b) < 1e-9 + 1e-6 * abs(b)


def check_times(case):
    device = Cuda(Torch, event=None)
    row, events = row_of(case)
    device.rows.append(row)
    assert device.messages(False, 0, 1) == "", "a step was told before its events had happened"
    assert not any(event.waited_for for event in events), "the hook waited for the device"
    for event in events:
        event.happened = True
    message = json.loads(device.messages(False, 0, 1))
    assert near(message["seconds"], case["seconds"]), message
    for field in ("phases", "enqueue"):
        assert message[field].keys() == case[field].keys(), message
        for name, seconds in case[field].items():
            assert near(message[field][name], seconds), (case["name"], field, name, message[field][name], seconds)
    assert near(sum(message["phases"].values()), message["seconds"]), "the phases are not the step"
    assert message["grad_norm"] == 2.0 and message["loss"] == 0.5 and message["peak_bytes"] == 7
    assert not device.rows


def check_order(cases):
    """A step whose events have happened does not overtake one whose have not; the end waits for both."""
    device = Cuda(Torch, event=None)
    first, events = row_of(cases[0], 1)
    second, later = row_of(cases[1], 2)
    device.rows += [first, second]
    for event in later:
        event.happened = True
    assert device.messages(False, 0, 1) == ""
    for event in events[:-1]:
        event.happened = True
    told = [json.loads(line) for line in device.messages(True, 0, 1).splitlines()]
    assert [message["step"] for message in told] == [1, 2]
    assert events[-1].waited_for and told[0]["learning_rate"] is None


def check_closure(case):
    """What runs inside optimizer.step() is taken out of the optimizer's time."""
    row, events = row_of(case)
    for event in events:
        event.happened = True
    whole, forward, backward = row[5], row[7], row[8]
    inside = whole - ((forward - 0) + (backward - 0) + (0 - 0))
    expected = 1e9 * (case["seconds"] - case["phases"]["forward"] - case["phases"]["backward"])
    assert abs(inside.device_ns() - expected) < 1000


def check_peak_is_what_the_limit_counts():
    """Address space where that is limited, else resident memory: reserved and never touched, 1 GiB tells them apart."""
    code = ("import mmap, resource, sys; limit = int(sys.argv[1]); "
            "resource.setrlimit(resource.RLIMIT_AS, (limit, limit)) if limit else None; "
            "held = mmap.mmap(-1, 1 << 30); import batchwright_device; print(batchwright_device._peak_bytes())")
    peaks = [int(subprocess.run([sys.executable, "-c", code, str(limit)], env=dict(os.environ, PYTHONPATH=sys.path[0]),
                                capture_output=True, text=True, check=True).stdout) for limit in (0, 8 << 30)]
    assert peaks[0] < 1 << 29 < 1 << 30 < peaks[1] < 8 << 30, peaks


check_peak_is_what_the_limit_counts()
cases = json.loads((ROOT / "tests" / "cases" / "hook" / "cuda_events.json").read_text())["cases"]
for case in cases:
    check_times(case)
    check_closure(case)
check_order(cases)
