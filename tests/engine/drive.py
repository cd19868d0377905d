"""Plays the tuner's end of the protocol (src/run/protocol.h) for tests and benchmarks of the engine alone."""
import json
import os
import pathlib
import socket
import subprocess
import tempfile


class Engine:
    """One batchwright-engine process that runs `job`; use as a context manager."""

    def __init__(self, program, job, environment=None):
        self.folder = tempfile.TemporaryDirectory(prefix="batchwright-")
        path = os.path.join(self.folder.name, "s")
        job_file = pathlib.Path(self.folder.name, "job.json")
        job_file.write_text(json.dumps({"version": 1, **job}))
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        listener.listen(1)
        self.process = subprocess.Popen([program, str(job_file)],
                                        env={**os.environ, **(environment or {}), "BATCHWRIGHT_SOCKET": path})
        listener.settimeout(60)
        self.connection, _ = listener.accept()
        listener.close()
        self.lines = self.connection.makefile("rw")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.lines.close()
        self.connection.close()
        self.process.wait(timeout=60)
        self.folder.cleanup()

    def receive(self):
        line = self.lines.readline()
        return json.loads(line) if line else None

    def send(self, **message):
        self.lines.write(json.dumps(message) + "\n")
        self.lines.flush()

    def until_done(self):
        """The messages up to and with `done` or `failed`."""
        messages = []
        while (message := self.receive()) is not None:
            messages.append(message)
            if message["type"] in ("done", "failed"):
                break
        return messages

    def trial(self, micro, accum, steps, **more):
        """The step reports of one trial, and how it ended."""
        self.send(type="split", micro=micro, accum=accum, steps=steps, **more)
        messages = self.until_done()
        return [m for m in messages if m["type"] == "step"], messages[-1] if messages else None


def run_job(program, job, environment=None):
    """Runs a job that needs no orders (train, dump) and returns all its messages."""
    with Engine(program, job, environment) as engine:
        return engine.until_done()
