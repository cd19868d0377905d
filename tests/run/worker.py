#!/usr/bin/env python3
"""A worker for the tests: speaks the workload protocol and misbehaves on request.

usage: worker.py PLAN.json, with BATCHWRIGHT_SOCKET set. It stands in for batchwright-engine too: then PLAN.json is an
engine's job file and BATCHWRIGHT_TEST_PLAN names the plan. The plan names what happens at start ("start") and at which
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

    def memory_limit(self):
        """Of the plan, or of the job that the tuner wrote."""
        options = self.plan.get("job", {}).get("options", {})
        return self.plan.get("limit_bytes") or options.get("memory_limit") or None

    def train(self):
        """Train mode: steps, then a summary; a stop ends it at the next step."""
        micro, accum = (int(part) for part in self.plan["job"]["split"].split("x")[:2])
        folder = self.plan["job"]["run_folder"]
        steps = self.plan["job"]["options"]["steps"]
        self.socket.setblocking(False)
        done = 0
        with open(os.path.join(folder, "steps.jsonl"), "w") as file:
            while done < steps:
                done += 1
                self.misbehave(self.plan.get("at_step", {}).get(str(done), ""))
                time.sleep(step_seconds(self.plan, micro, accum) if self.plan.get("sleeps") else 0)
                print(json.dumps({"step": done}), file=file, flush=True)
                self.say(type="step", step=done, micro_steps=accum, examples=micro * accum, tokens=10, padded_tokens=10,
                         seconds=0.01, loss=1 / done)
                try:
                    if b"stop" in self.socket.recv(4096):
                        break
                except BlockingIOError:
                    pass
        self.say(type="note", text="evaluating")
        self.say(type="done", result={"steps": done, "seconds": 0.01 * done,
                                      "evaluation": {"accuracy": 0.75, "loss": 0.5, "examples": 20}})

    def serve(self, request):
        micro, accum = request["micro"], request["accum"]
        self.misbehave(self.plan.get("at", {}).get(str(micro), ""))
        limit = self.memory_limit()
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
        if self.plan.get("job", {}).get("mode") == "train":
            self.train()
            return
        for line in self.lines:
            message = json.loads(line)
            if message["type"] == "stop":
                return
            self.serve(message)


with open(sys.argv[1]) as plan_file:
    the_plan = json.load(plan_file)
if "BATCHWRIGHT_TEST_PLAN" in os.environ:
    job = the_plan
    with open(os.environ["BATCHWRIGHT_TEST_PLAN"]) as plan_file:
        the_plan = json.load(plan_file)
    the_plan.setdefault("job", job)
if the_plan.get("start") == "silent":
    time.sleep(1000)
Worker(the_plan).run()
