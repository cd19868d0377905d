"""`batchwright.step()`: the end of an optimizer step, said by the script itself.

The hook that `batchwright tune -- CMD` brings sees the steps of torch optimizers by itself. A loop that it cannot see
(another framework, an optimizer of its own) or that it would cut wrongly (two optimizers in turn) calls step() once after
each optimizer step. Outside of a trial it does nothing.
"""
import os
import sys
import time

_own = None


def step(loss=None, examples=None, tokens=None, micro_steps=None):
    """Marks the end of an optimizer step; what is not given is what the hook saw, if it saw anything."""
    if "BATCHWRIGHT_SOCKET" not in os.environ:
        return
    hook = sys.modules.get("batchwright_probe")
    if hook is not None and hook.probe is not None:
        hook.probe.mark_step(loss, examples, tokens, micro_steps)
    else:
        _own_steps().mark(loss, examples, tokens, micro_steps)


def _own_steps():
    global _own
    if _own is None:
        _own = _Steps()
    return _own


class _Steps:
    """Without torch there is no hook: a step lasts from call to call, and the first call starts the clock."""

    def __init__(self):
        sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "hook"))
        try:
            from batchwright_channel import Channel
        finally:
            sys.path.pop(0)
        self.channel = Channel(int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1")))
        self.channel.hello("batchwright.step()", "not known")
        self.wanted = int(os.environ.get("BATCHWRIGHT_STEPS", "0"))
        self.steps, self.begin = 0, None

    def mark(self, loss, examples, tokens, micro_steps):
        now = time.perf_counter()
        if self.begin is not None:
            self.steps += 1
            self.channel.say(type="step", step=self.steps, micro_steps=micro_steps or 0, examples=examples or 0,
                             tokens=tokens or 0, padded_tokens=tokens or 0, seconds=now - self.begin, phases={},
                             loss=loss, grad_norm=None, peak_bytes=None)
            if self.wanted and self.steps >= self.wanted:
                self.channel.say(type="done", result=None)
                os._exit(0)
        self.begin = time.perf_counter()
