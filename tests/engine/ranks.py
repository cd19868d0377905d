"""Runs one engine job on several processes, as `batchwright --devices` does, for tests and benchmarks of the engine alone."""
import json
import os
import pathlib
import selectors
import socket
import subprocess
import tempfile
import time


class Ranks:
    """`size` batchwright-engine processes that run `job` together; use as a context manager."""

    def __init__(self, program, job, size, environment=None, start=None, wrap=lambda rank, command: command):
        """start: the ranks to start (all); wrap: turns a rank's command into another that runs it."""
        self.folder = tempfile.TemporaryDirectory(prefix="batchwright-")
        folder = pathlib.Path(self.folder.name)
        (folder / "job.json").write_text(json.dumps({"version": 1, **job}))
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(folder / "s"))
        self.listener.listen(size)
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.listener, selectors.EVENT_READ)
        self.buffers, self.ready, self.closed = {}, [], 0
        self.processes = {}
        for rank in range(size) if start is None else start:
            ranked = {} if size == 1 else {
                "RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": size, "LOCAL_WORLD_SIZE": size,
                "MASTER_ADDR": "127.0.0.1", "BATCHWRIGHT_PORT_FILE": folder / "port"}
            self.processes[rank] = subprocess.Popen(
                wrap(rank, [program, str(folder / "job.json")]), stderr=open(folder / f"errors-{rank}", "w"),
                env={**os.environ, "BATCHWRIGHT_SOCKET": str(folder / "s"),
                     **{name: str(value) for name, value in ranked.items()}, **(environment or {})})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes.values():
            if process.poll() is None:
                process.kill()
            process.wait()
        for connection in list(self.buffers):
            connection.close()
        self.listener.close()
        self.folder.cleanup()

    def errors(self, rank):
        return pathlib.Path(self.folder.name, f"errors-{rank}").read_text()

    def receive(self, timeout=60):
        """The next message of any rank; None when every process has ended or nothing comes."""
        deadline = time.monotonic() + timeout
        while not self.ready and time.monotonic() < deadline:
            if all(process.poll() is not None for process in self.processes.values()) and not self.selector.select(0):
                return None
            for key, _ in self.selector.select(0.1):
                if key.fileobj is self.listener:
                    connection, _ = self.listener.accept()
                    self.buffers[connection] = b""
                    self.selector.register(connection, selectors.EVENT_READ)
                    continue
                data = key.fileobj.recv(1 << 16)
                if not data:
                    self.selector.unregister(key.fileobj)
                    del self.buffers[key.fileobj]
                    key.fileobj.close()
                    continue
                *lines, self.buffers[key.fileobj] = (self.buffers[key.fileobj] + data).split(b"\n")
                self.ready += [json.loads(line) for line in lines]
        return self.ready.pop(0) if self.ready else None

    def until_done(self, timeout=120):
        """All messages up to and with `done` or `failed`."""
        messages = []
        while (message := self.receive(timeout)) is not None:
            messages.append(message)
            if message["type"] in ("done", "failed"):
                break
        return messages

    def wait(self, seconds):
        """Whether every process ended in time."""
        deadline = time.monotonic() + seconds
        for process in self.processes.values():
            try:
                process.wait(max(0.01, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                return False
        return True


def run(program, job, size, **more):
    """Runs a job to its end; its messages. Every process must end with success."""
    with Ranks(program, job, size, **more) as ranks:
        messages = ranks.until_done()
        assert messages and messages[-1]["type"] == "done", (messages[-1:], [ranks.errors(r) for r in ranks.processes])
        assert ranks.wait(30), "a process did not end"
        codes = [process.returncode for process in ranks.processes.values()]
        assert codes == [0] * size, codes
        return messages
