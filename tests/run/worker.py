"""A worker for the tests: speaks the workload protocol and misbehaves on request.

usage: worker.py PLAN.json, with BATCHWRIGHT_SOCKET set. The plan names what happens at start ("start") and at which
micro-batch ("at": {"8": "hang", ...}); each misbehaviour happens once when "once" names a file to remember it in.
"""
import json
import os
import signal
import socket
import subprocess
import sys
import time


def step_seconds(plan, micro, accum):
    """The virtual time that one step takes: a cost per micro-step and one per example."""
    return accum * (plan.get("fixed", 0.002) + plan.get("per_example", 0.0005) * micro)


def peak_bytes(plan, micro):
    return plan.get("base_bytes", 100) + plan.get("bytes_per_example", 10) * micro


class Worker:
    def __init__(self, plan):
        self.plan = plan
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(os.environ["BATCHWRIGHT_SOCKET"])
        self.lines = self.socket.makefile("r")

    def say(self, **message):
        self.say_raw((json.dumps(message) + "\n").encode())

    def say_raw(self, data):
        self.socket.sendall(data)

    def misbehave(self, how):
        memory = self.plan.get("once")
        if memory:
            if os.path.exists(memory):
                return
            open(memory, "w").close()
        if how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif how == "segfault":
            os.kill(os.getpid(), signal.SIGSEGV)
        elif how == "hang":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(1000)
        elif how == "garbage":
            self.say_raw(b"\xff\x00{{{ not the protocol\n")
            time.sleep(1000)
        elif how == "flood":
            while True:
                self.say_raw(b"x" * (1 << 20))
        elif how == "traceback":
            raise ValueError("the data is odd")
        elif how == "cuda":
            print("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", file=sys.stderr)
            sys.exit(1)
        elif how == "exit2":
            print("batchwright-engine: model.safetensors: is truncated", file=sys.stderr)
            sys.exit(2)
        elif how == "grandchild":
            left = subprocess.Popen(["sleep", "1000"], start_new_session=True)
            with open(self.plan["left"], "w") as file:
                print(left.pid, file=file)
            os.kill(os.getpid(), signal.SIGKILL)
        elif how == "close":
            self.lines.close()
            self.socket.close()
            time.sleep(1000)
        elif how == "step_first":
            self.say(type="step", step=1, seconds=1)
            time.sleep(1000)

    def serve(self, request):
        micro, accum = request["micro"], request["accum"]
        self.misbehave(self.plan.get("at", {}).get(str(micro), ""))
        limit = self.plan.get("limit_bytes")
        if limit is not None and peak_bytes(self.plan, micro) > limit:
            self.say(type="failed", kind="out_of_memory", message="needs %d bytes" % peak_bytes(self.plan, micro),
                     peak_bytes=limit)
            return
        ignored = self.plan.get("ignores_accumulation", False)
        for step in range(request["steps"]):
            seconds = step_seconds(self.plan, micro, accum)
            if self.plan.get("sleeps", False):
                time.sleep(seconds)
            self.say(type="step", step=step + 1, micro_steps=1 if ignored else accum,
                     examples=micro if ignored else micro * accum, tokens=10 * micro * accum,
                     padded_tokens=12 * micro * accum, seconds=seconds, phases={"forward": seconds / 3},
                     peak_bytes=peak_bytes(self.plan, micro))
        self.say(type="done", result=None)

    def run(self):
        self.misbehave(self.plan.get("start", ""))
        self.say(type="hello", protocol=self.plan.get("protocol", 1), framework="test worker", device="none",
                 can_resplit=True, process_id=os.getpid())
        for line in self.lines:
            message = json.loads(line)
            if message["type"] == "stop":
                return
            self.serve(message)


with open(sys.argv[1]) as plan_file:
    the_plan = json.load(plan_file)
if the_plan.get("start") == "silent":
    time.sleep(1000)
Worker(the_plan).run()
