"""The same training on 1, 2 and 4 processes, and what happens when one of them fails: devices_test.py ENGINE [--only NAME] [--device cuda]

Losses and gradient norms agree to 1e-5 and the evaluation counts the same examples right, with dropout on, with a last
window that no number of processes divides, in full and with LoRA. A process that is killed, stopped or never started ends
the others within 30 seconds, and they name it. A training goes on from its checkpoint on another number of processes.
"""
import argparse
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent / "python"), str(HERE.parent.parent / "bench")]
import against_transformers as shared  # noqa: E402
import ranks  # noqa: E402
import start as start_folder  # noqa: E402

STEPS = 12
# 361 rows are trained on: the eleventh window of 36 holds a single example.
BATCH = {"effective_batch": 36, "eval_fraction": 0.0975}
SPLITS = {1: "12x3", 2: "6x3x2", 4: "9x1x4"}
FAILURE_SECONDS = 30


def prepare(folder, method, task=shared.SEQUENCE, family="bert"):
    arguments = ["--labels", "2" if task == shared.QUESTION else "3"] + (["--lora", "4"] if method == "lora" else [])
    start_folder.main(shared.words(folder / "start", "--random", "--task", task, "--family", family, *arguments))
    shared.make_tokens(folder / "rows.tokens", folder / "start", task, 3, False, 48 if task == shared.QUESTION else 128)


def job(folder, out, method, size, **options):
    return shared.job("train", folder, out, method, SPLITS[size], folder / "start", options.pop("steps", STEPS),
                      **({"lora_dropout": 0.1, "model_dropout": 0.1, "threads": 1} | BATCH | options))


def steps_of(folder):
    return [json.loads(line) for line in (folder / "steps.jsonl").read_text().splitlines()]


def close(a, b, tolerance):
    return abs(a - b) <= tolerance * max(abs(a), abs(b))


def expect_same(reference, other, what):
    assert len(reference) == len(other), (what, len(reference), len(other))
    for ours, theirs in zip(reference, other):
        for name, tolerance in (("loss", 1e-5), ("grad_norm", 1e-4), ("learning_rate", 0), ("examples", 0), ("tokens", 0)):
            assert close(ours[name], theirs[name], tolerance), (what, ours["step"], name, ours[name], theirs[name])


def expect_same_evaluation(reference, other, what):
    ours, theirs = (json.loads((folder / "summary.json").read_text())["evaluation"] for folder in (reference, other))
    for name in ours:
        if name != "seconds":
            tolerance = 1e-5 if name in ("loss", "perplexity") else 0
            assert close(ours[name], theirs[name], tolerance), (what, name, ours, theirs)


def check_same_training(engine, folder):
    for method in ("full", "lora"):
        home = folder / method
        home.mkdir()
        prepare(home, method)
        for size in SPLITS:
            ranks.run(engine, job(home, home / f"on-{size}", method, size), size)
        for size in (2, 4):
            expect_same(steps_of(home / "on-1"), steps_of(home / f"on-{size}"), f"{method} on {size}")
            expect_same_evaluation(home / "on-1", home / f"on-{size}", f"{method} on {size}")
        # Over Gloo, too: the sums of ranks that share no memory.
        ranks.run(engine, job(home, home / "network", method, 2), 2, environment={"BATCHWRIGHT_SUMS": "network"})
        expect_same(steps_of(home / "on-1"), steps_of(home / "network"), f"{method} on 2 over the network")
        assert [step["examples"] for step in steps_of(home / "on-4")][10] == 1
        print(f"{method}: {STEPS} steps on 1, 2 and 4 processes: the same losses and metrics")


def check_tasks(engine, folder):
    """Losses over all ranks' labels, which fall unevenly on examples, and metrics that no rank can know alone."""
    for task, family in ((shared.TOKEN, "bert"), (shared.QUESTION, "roberta"), (shared.CAUSAL, "gpt2")):
        home = folder / task
        home.mkdir()
        prepare(home, "full", task, family)
        for size in SPLITS:
            ranks.run(engine, job(home, home / f"on-{size}", "full", size, steps=5), size)
        for size in (2, 4):
            expect_same(steps_of(home / "on-1"), steps_of(home / f"on-{size}"), f"{task} on {size}")
            expect_same_evaluation(home / "on-1", home / f"on-{size}", f"{task} on {size}")
        evaluation = json.loads((home / "on-4" / "summary.json").read_text())["evaluation"]
        print(f"{task}, {family}: 1, 2 and 4 processes agree; {evaluation}")


def check_resume(engine, folder):
    """One process, then two, then four, each killed: the losses are those of a run that nobody disturbed."""
    prepare(folder, "lora")
    ranks.run(engine, job(folder, folder / "whole", "lora", 1), 1)
    for size, last_step in ((1, 4), (2, 8)):
        with ranks.Ranks(engine, job(folder, folder / "broken", "lora", size, save_every=3), size) as group:
            while (message := group.receive()) is not None:
                assert message["type"] not in ("failed", "done"), message
                if message["type"] == "step" and message["step"] == last_step:
                    break
            for process in group.processes.values():
                process.send_signal(signal.SIGKILL)
    messages = ranks.run(engine, job(folder, folder / "broken", "lora", 4, save_every=3), 4)
    assert any("going on after step 6, on another split" in m.get("text", "") for m in messages), messages[:4]
    expect_same(steps_of(folder / "whole"), steps_of(folder / "broken"), "resumed on 1, 2, 4")
    expect_same_evaluation(folder / "whole", folder / "broken", "resumed on 1, 2, 4")
    # A world that the job's split was not made for: the accumulation is recomputed and said.
    messages = ranks.run(engine, job(folder, folder / "other-world", "lora", 4), 2)
    assert any("9x2x2 keeps the effective batch of 36" in m.get("text", "") for m in messages), messages[:4]
    expect_same(steps_of(folder / "whole"), steps_of(folder / "other-world"), "a split for 4 on 2")
    print("resumed on 1, 2 and 4 processes: the same losses")


def failing(engine, folder, size, act, expected, begun=True, **more):
    """Starts a long training, does `act`, and expects every other rank to end in time naming `expected`."""
    request = job(folder, folder / f"failing-{act.__name__}-{size}", "lora", size, steps=100000)
    with ranks.Ranks(engine, request, size, **more) as group:
        while begun:
            message = group.receive()
            assert message is not None and message["type"] not in ("failed", "done"), message
            if message["type"] == "step" and message["step"] == 3:
                break
        victim = act(group)
        begin = time.monotonic()
        others = [rank for rank in group.processes if rank != victim]
        while time.monotonic() - begin < FAILURE_SECONDS and any(group.processes[r].poll() is None for r in others):
            group.receive(0.2)
        took = time.monotonic() - begin
        for rank in others:
            assert group.processes[rank].poll() is not None, f"rank {rank} still runs after {took:.0f} s"
            assert expected in group.errors(rank), (rank, group.errors(rank))
            assert "frame #" not in group.errors(rank), (rank, group.errors(rank))
        print(f"{size} processes, {act.__name__}: ended in {took:.1f} s: {group.errors(others[0]).strip()[:150]}")


def killed(group):
    group.processes[1].send_signal(signal.SIGKILL)
    return 1


def leader_killed(group):
    group.processes[0].send_signal(signal.SIGKILL)
    return 0


def stopped(group):
    group.processes[1].send_signal(signal.SIGSTOP)
    return 1


def leader_stopped(group):
    group.processes[0].send_signal(signal.SIGSTOP)
    return 0


def never_started(_):
    return None


def check_failures(engine, folder):
    prepare(folder, "lora")
    for size in (2, 4):
        failing(engine, folder, size, killed, "rank 1 ")
    failing(engine, folder, 4, leader_killed, "rank 0 ")
    failing(engine, folder, 2, stopped, "rank 1 ")
    failing(engine, folder, 2, leader_stopped, "rank 0 ")
    failing(engine, folder, 4, never_started, "rank 2", begun=False, start=[0, 1, 3])
    failing(engine, folder, 2, never_started, "rank 0", begun=False, start=[1])


def check_torchrun(engine, folder):
    """torchrun starts the engine by its environment variables; what a rank's failure leaves, it ends."""
    prepare(folder, "lora")
    ranks.run(engine, job(folder, folder / "alone", "lora", 1), 1)
    (folder / "job.json").write_text(json.dumps({"version": 1, **job(folder, folder / "launched", "lora", 2)}))
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "--no-python",
               engine, str(folder / "job.json")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr
    assert f"step {STEPS}, loss" in done.stderr, done.stderr
    expect_same(steps_of(folder / "alone"), steps_of(folder / "launched"), "torchrun")
    expect_same_evaluation(folder / "alone", folder / "launched", "torchrun")
    print("torchrun, 2 processes: the same losses and metrics")


CHECKS = {"same_training": check_same_training, "tasks": check_tasks, "resume": check_resume, "failures": check_failures,
          "torchrun": check_torchrun}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine")
    parser.add_argument("--only", choices=CHECKS)
    parser.add_argument("--device", default=shared.DEVICE)
    options = parser.parse_args()
    shared.DEVICE = options.device
    for name, check in CHECKS.items():
        if options.only in (None, name):
            with tempfile.TemporaryDirectory(prefix="batchwright-devices-") as folder:
                check(options.engine, pathlib.Path(folder))


if __name__ == "__main__":
    main()
