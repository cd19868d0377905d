"""Kills trainings at random moments and lets each go on: kills.py ENGINE [--kills 50] [--seed 0]

Every kill takes a random process of 1, 2 or 4 with SIGKILL, after a random time; the next start is on another number of
processes. Whatever was lost, the steps of the finished run must be those of a run that nobody disturbed, every loss to
1e-5 (on the same number of processes to the bit), each step once. Between two kills nothing may be left running.
"""
import argparse
import json
import pathlib
import random
import signal
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent / "python"), str(HERE.parent.parent / "bench")]
import devices_test as devices  # noqa: E402
import ranks  # noqa: E402

STEPS = 60


def killed_run(engine, request, size, rng):
    """True when the training ended before its kill came."""
    with ranks.Ranks(engine, request, size) as group:
        end = time.monotonic() + rng.uniform(0.05, 1.5)
        while time.monotonic() < end:
            message = group.receive(max(0.0, end - time.monotonic()))
            if message is not None and message["type"] == "done":
                group.wait(30)
                return True
            assert message is None or message["type"] != "failed", message
        victim = rng.choice(list(group.processes))
        group.processes[victim].send_signal(signal.SIGKILL)
        assert group.wait(devices.FAILURE_SECONDS), "a process outlived the killed one by more than 30 s"
    return False


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--same-size", type=int, choices=devices.SPLITS, help="always on so many processes: the same bits")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    with tempfile.TemporaryDirectory(prefix="batchwright-kills-") as name:
        folder = pathlib.Path(name)
        devices.prepare(folder, "lora")
        size = options.same_size or 1
        ranks.run(options.engine, devices.job(folder, folder / "whole", "lora", size, steps=STEPS), size)
        whole = devices.steps_of(folder / "whole")
        kills = runs = 0
        while kills < options.kills:
            runs += 1
            out = folder / f"run-{runs}"
            done = False
            while not done:
                size = options.same_size or rng.choice(list(devices.SPLITS))
                request = devices.job(folder, out, "lora", size, steps=STEPS, save_every=2)
                if kills >= options.kills:
                    ranks.run(options.engine, request, size)
                    break
                done = killed_run(options.engine, request, size, rng)
                kills += not done
            steps = devices.steps_of(out)
            assert [step["step"] for step in steps] == list(range(1, STEPS + 1)), [step["step"] for step in steps]
            if options.same_size:
                assert [s["loss"] for s in steps] == [s["loss"] for s in whole], f"run {runs}: the bits differ"
            devices.expect_same(whole, steps, f"run {runs}")
            devices.expect_same_evaluation(folder / "whole", out, f"run {runs}")
            print(f"run {runs}: {kills} kills so far, {STEPS} steps, the same losses", flush=True)
    print(json.dumps({"kills": kills, "runs": runs, "steps": STEPS}))


if __name__ == "__main__":
    main()
