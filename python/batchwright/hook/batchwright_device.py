"""What a moment is on a device, and how rows of moments become `step` messages of the protocol.

A row is one optimizer step as the probe collected it: (step, micro-steps, examples, tokens, padded tokens, whole time, input,
forward, backward, optimizer, collective, loss, squared gradient norm, learning rate, evidence).
"""
import resource
import time


def _number(value):
    """JSON has no infinities."""
    if value is None:
        return "null"
    value = float(value)
    return repr(value) if value - value == 0 else "null"


def _message(step, micro_steps, examples, tokens, padded, seconds, phases, loss, norm_squared, rate, rest):
    return (f'{{"type":"step","step":{step},"micro_steps":{micro_steps},"examples":{examples},"tokens":{tokens},'
            f'"padded_tokens":{padded},"seconds":{seconds}e-9,"phases":{{{phases}}}'
            f'{_UNKNOWN if loss is norm_squared is rate is None else _values(loss, norm_squared, rate)}{rest}')


_UNKNOWN = ',"loss":null,"grad_norm":null,"learning_rate":null'


def _values(loss, norm_squared, rate):
    norm = None if norm_squared is None else float(norm_squared) ** 0.5
    return f',"loss":{_number(loss)},"grad_norm":{_number(norm)},"learning_rate":{_number(rate)}'


def _peak_bytes():
    """As a limit counts it: the address space where that is limited, else what was resident."""
    if resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY:
        with open("/proc/self/status") as status:
            for line in status:
                if line.startswith("VmPeak:"):
                    return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


class Cpu:
    """Moments and times are integers, nanoseconds of the host."""

    reads_at_once = True
    mark = staticmethod(time.perf_counter_ns)

    def __init__(self, torch):
        self.torch = torch
        self.rows = []

    @staticmethod
    def value(tensor):
        return tensor.item()

    def name(self):
        return f"cpu, {self.torch.get_num_threads()} threads"

    def messages(self, wait, rank, world_size):
        end = f',"peak_bytes":{_peak_bytes()},"rank":{rank},"world_size":{world_size}}}'
        lines = []
        for (step, micro_steps, examples, tokens, padded, seconds, waited, forward, backward, optimizer, collective, loss,
             norm_squared, rate, evidence) in self.rows:
            residual = max(0, seconds - waited - forward - backward - optimizer - collective)
            phases = (f'"forward":{forward}e-9,"backward":{backward}e-9,"optimizer":{max(0, optimizer)}e-9,'
                      f'"residual":{residual}e-9,"input":{waited}e-9,"collective":{collective}e-9')
            lines.append(_message(step, micro_steps, examples, tokens, padded, seconds, phases, loss, norm_squared, rate,
                                  end if evidence is None else f',"evidence":{evidence}{end}'))
        self.rows.clear()
        return "\n".join(lines)


class Cuda:
    """Moments are pairs of an event on the current stream and the host's nanoseconds; nothing waits for the device.

    A step's message is sent once the events of the step have happened. The device's time of a phase is the sum of its event
    pairs; the host's time of the same pairs is how long they took to enqueue. A phase whose enqueue time is as long as its
    device time is bound by launches, not by kernels.
    """

    reads_at_once = False

    def __init__(self, torch, event=None):
        self.torch = torch
        self.event = event or (lambda: torch.cuda.Event(enable_timing=True))
        self.rows = []

    def mark(self):
        event = self.event()
        event.record()
        return Moment(event, time.perf_counter_ns())

    @staticmethod
    def value(tensor):
        return tensor.detach().double()  # stays on the device until the events of its step have happened

    def name(self):
        return self.torch.cuda.get_device_name()

    def messages(self, wait, rank, world_size):
        end = f',"peak_bytes":{self.torch.cuda.max_memory_allocated()},"rank":{rank},"world_size":{world_size}}}'
        lines = []
        while self.rows:
            whole = self.rows[0][5]
            if wait:
                whole.wait()
            elif not whole.happened():
                break
            lines.append(self._line(self.rows.pop(0), end))
        return "\n".join(lines)

    def _line(self, row, end):
        (step, micro_steps, examples, tokens, padded, whole, waited, forward, backward, optimizer, collective, loss,
         norm_squared, rate, evidence) = row
        seconds = whole.device_ns()
        spans = {"forward": forward, "backward": backward, "optimizer": optimizer}
        device = {name: max(0, span.device_ns()) if span else 0 for name, span in spans.items()}
        host = {name: max(0, span.host_ns()) if span else 0 for name, span in spans.items()}
        # The host waits for data while the device works: only what the device had nothing to do for is input wait.
        device["input"] = min(waited, max(0, seconds - sum(device.values())))
        device["residual"] = max(0, seconds - sum(device.values()))
        rest = f',"enqueue":{{{_named(host)}}}' + ("" if evidence is None else f',"evidence":{evidence}') + end
        return _message(step, micro_steps, examples, tokens, padded, seconds, _named(device), loss, norm_squared, rate,
                        rest)


class Moment:
    __slots__ = ("event", "host")

    def __init__(self, event, host):
        self.event, self.host = event, host

    def __sub__(self, earlier):
        return Span(((earlier, self, 1),))

    def __ge__(self, host):
        """Whether the host has come so far."""
        return self.host >= host


class Span:
    """A signed sum of stretches between two moments."""

    __slots__ = ("parts",)

    def __init__(self, parts):
        self.parts = parts

    def __add__(self, other):
        return self if other == 0 else Span(self.parts + other.parts)

    __radd__ = __add__

    def __sub__(self, other):
        return self if other == 0 else Span(self.parts + tuple((a, b, -sign) for a, b, sign in other.parts))

    def __eq__(self, other):
        return self is other

    def device_ns(self):
        return int(1e6 * sum(sign * begin.event.elapsed_time(end.event) for begin, end, sign in self.parts))

    def host_ns(self):
        return sum(sign * (end.host - begin.host) for begin, end, sign in self.parts)

    def happened(self):
        return self.parts[-1][1].event.query()

    def wait(self):
        self.parts[-1][1].event.synchronize()


def _named(nanoseconds):
    return ",".join(f'"{name}":{value}e-9' for name, value in nanoseconds.items())
