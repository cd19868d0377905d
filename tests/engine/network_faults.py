"""Two ranks in two network namespaces, and what a bad network does to them: network_faults.py ENGINE

Needs root and iproute2. With delay, with packet loss and after a short cut the training goes on and its losses are those
of one process; after a lasting cut both ranks end within 30 seconds, naming each other; never a wrong result. Without the
rights to make namespaces it says so and exits 77 (a skipped test).
"""
import contextlib
import ctypes
import fcntl
import heapq
import os
import pathlib
import random
import select
import struct
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent / "python"), str(HERE.parent.parent / "bench")]
import devices_test as devices  # noqa: E402
import ranks  # noqa: E402

NAMES = [f"bw{os.getpid()}r{rank}" for rank in (0, 1)]
ADDRESSES = ["10.213.77.1", "10.213.77.2"]


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


class Cable(threading.Thread):
    """Joins two namespaces by a TUN device in each, and carries the packets between them: late, or not at all."""

    def __init__(self):
        super().__init__(daemon=True)
        self.delay, self.loss, self.running = 0.0, 0.0, True
        self.rng = random.Random(0)
        self.ends = [self.tun_in(name) for name in NAMES]
        for name, address in zip(NAMES, ADDRESSES):
            ip("-n", name, "address", "add", f"{address}/24", "dev", "cable")
            ip("-n", name, "link", "set", "cable", "up")

    @staticmethod
    def tun_in(name):
        libc = ctypes.CDLL(None, use_errno=True)
        with open("/proc/self/ns/net") as home, open(f"/run/netns/{name}") as away:
            if libc.setns(away.fileno(), 0) != 0:
                raise OSError(ctypes.get_errno(), "setns")
            try:
                end = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
                iff_tun, iff_no_pi, tunsetiff = 0x0001, 0x1000, 0x400454CA  # linux/if_tun.h
                fcntl.ioctl(end, tunsetiff, struct.pack("16sH", b"cable", iff_tun | iff_no_pi))
            finally:
                libc.setns(home.fileno(), 0)
        return end

    def run(self):
        waiting = []  # (when, number, end to write to, packet)
        number = 0
        while self.running:
            timeout = max(0.0, waiting[0][0] - time.monotonic()) if waiting else 0.05
            for end in select.select(self.ends, [], [], min(timeout, 0.05))[0]:
                packet = os.read(end, 1 << 16)
                if self.rng.random() >= self.loss:
                    number += 1
                    other = self.ends[1 - self.ends.index(end)]
                    heapq.heappush(waiting, (time.monotonic() + self.delay, number, other, packet))
            while waiting and waiting[0][0] <= time.monotonic():
                _, _, end, packet = heapq.heappop(waiting)
                with contextlib.suppress(BlockingIOError):
                    os.write(end, packet)

    def close(self):
        self.running = False
        self.join()
        for end in self.ends:
            os.close(end)

    def cut(self, seconds=None):
        """Packets are lost without a word, as when a plug is pulled or a switch dies."""
        self.loss = 1.0
        if seconds is not None:
            time.sleep(seconds)
            self.loss = 0.0


@contextlib.contextmanager
def two_namespaces():
    cable = None
    try:
        for name in NAMES:
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
        cable = Cable()
        cable.start()
        yield cable
    finally:
        if cable is not None:
            cable.close()
        for name in NAMES:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


def start(engine, request):
    environment = {"BATCHWRIGHT_SUMS": "network", "MASTER_ADDR": ADDRESSES[0], "MASTER_PORT": "29611", "LOCAL_WORLD_SIZE": "1", "LOCAL_RANK": "0",
                   "BATCHWRIGHT_PORT_FILE": "", "GLOO_SOCKET_IFNAME": "cable"}
    return ranks.Ranks(engine, request, 2, environment=environment,
                       wrap=lambda rank, command: ["ip", "netns", "exec", NAMES[rank], *command])


def wait_for_step(group, step):
    while (message := group.receive()) is not None:
        assert message["type"] not in ("failed", "done"), message
        if message["type"] == "step" and message["step"] == step:
            return


def expect_goes_on(engine, folder, name, fault):
    with two_namespaces() as cable, start(engine, devices.job(folder, folder / name, "lora", 2)) as group:
        wait_for_step(group, 2)
        fault(cable)
        messages = group.until_done(120)
        assert messages and messages[-1]["type"] == "done", (name, messages[-1:], group.errors(0), group.errors(1))
        assert group.wait(30)
    devices.expect_same(devices.steps_of(folder / "alone"), devices.steps_of(folder / name), name)
    devices.expect_same_evaluation(folder / "alone", folder / name, name)
    print(f"{name}: goes on, the same losses and metrics", flush=True)


def expect_ends(engine, folder, name, fault):
    with two_namespaces() as cable, start(engine, devices.job(folder, folder / name, "lora", 2, steps=100000)) as group:
        wait_for_step(group, 2)
        fault(cable)
        begin = time.monotonic()
        ended = group.wait(devices.FAILURE_SECONDS)
        took = time.monotonic() - begin
        assert ended, f"{name}: still running after {took:.0f} s"
        assert "rank 1 " in group.errors(0), group.errors(0)
        assert "rank 0 " in group.errors(1), group.errors(1)
        print(f"{name}: ended in {took:.1f} s: {group.errors(0).strip()[:140]}", flush=True)


def main():
    engine = sys.argv[1]
    probe = subprocess.run(["ip", "netns", "add", f"{NAMES[0]}p"], capture_output=True)
    if probe.returncode != 0:
        print("network namespaces cannot be made here, so nothing was checked")
        sys.exit(77)
    ip("netns", "del", f"{NAMES[0]}p")
    with tempfile.TemporaryDirectory(prefix="batchwright-network-") as name:
        folder = pathlib.Path(name)
        devices.prepare(folder, "lora")
        ranks.run(engine, devices.job(folder, folder / "alone", "lora", 1), 1)
        def slow(cable):
            cable.delay = 0.05

        def lossy(cable):
            cable.loss = 0.05

        expect_goes_on(engine, folder, "delay of 50 ms", slow)
        expect_goes_on(engine, folder, "loss of 5 % of the packets", lossy)
        expect_goes_on(engine, folder, "cut of 4 s", lambda cable: cable.cut(4))
        expect_ends(engine, folder, "cut for good", Cable.cut)


if __name__ == "__main__":
    main()
