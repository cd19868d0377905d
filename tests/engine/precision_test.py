"""16-bit training beside torch's own: precision_test.py ENGINE

fp16 against torch.autocast(float16) with torch.amp.GradScaler, started at a loss scale that overflows and with a short
growth interval: the same steps are skipped (on one thread, where products span the whole batch as torch's do), every
scale and learning rate is the same, losses agree as 16-bit numbers do. bf16
against torch.autocast(bfloat16). A checkpoint in the middle keeps the scale and its counter; two processes skip
together.
"""
import json
import pathlib
import signal
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent / "python"), str(HERE.parent.parent / "bench")]
import against_transformers as shared  # noqa: E402
import drive  # noqa: E402
import ranks  # noqa: E402
import reference as peer  # noqa: E402
import sampler  # noqa: E402
import start as start_folder  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from token_file import TokenFile  # noqa: E402

STEPS, INTERVAL, FIRST_SCALE = 24, 4, 2.0 ** 24


def prepare(folder, method):
    start_folder.main(shared.words(folder / "start", "--random", *(["--lora", "4"] if method == "lora" else [])))
    shared.make_tokens(folder / "rows.tokens", folder / "start", shared.SEQUENCE, 2, False, 128)


def job(folder, out, method, precision, split="32x1", **options):
    return shared.job("train", folder, out, method, split, folder / "start", STEPS, precision=precision,
                      loss_scale=FIRST_SCALE, loss_scale_interval=INTERVAL, **{"threads": 1} | options)


def steps_of(folder):
    return [json.loads(line) for line in (folder / "steps.jsonl").read_text().splitlines()]


def torch_steps(folder, method, dtype):
    """What a training loop with autocast and GradScaler does, a record a step."""
    tokens = TokenFile(folder / "rows.tokens")
    model = peer.load_model(folder / "start", folder / "start" / "adapter" if method == "lora" else None,
                            tokens.task)
    parameters = peer.trainable(model)
    options = peer.parse_arguments(shared.words("model", "tokens", "out"))
    optimizer = peer.make_optimizer(parameters, options)
    scheduler = transformers.get_scheduler("linear", optimizer, 0, STEPS)
    scaler = torch.amp.GradScaler("cpu", init_scale=FIRST_SCALE, growth_interval=INTERVAL, enabled=dtype == torch.float16)
    train, _ = sampler.split_rows(len(tokens), shared.EVAL_FRACTION, 0)
    records = []
    for window in sampler.windows(train, shared.EFFECTIVE_BATCH, 0, STEPS):
        record = {"loss_scale": scaler.get_scale(), "learning_rate": scheduler.get_last_lr()[0]}
        with torch.autocast("cpu", dtype=dtype):
            loss = model(**tokens.padded(window)).loss
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        norm = torch.nn.utils.clip_grad_norm_(parameters.values(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        record |= {"loss": loss.item(), "skipped": not bool(torch.isfinite(norm)), "grad_norm": norm.item()}
        if not record["skipped"]:
            scheduler.step()
        records.append(record)
    return records


def check_against_torch(engine, folder, method, precision, dtype, tolerance):
    out = folder / f"{precision}"
    drive.run_job(engine, job(folder, out, method, precision))
    ours, theirs = steps_of(out), torch_steps(folder, method, dtype)
    skips = [step["step"] for step in ours if step.get("skipped")]
    for step, torch_step in zip(ours, theirs):
        if dtype == torch.float16:
            for name in ("loss_scale", "skipped"):
                assert step[name] == torch_step[name], (method, step["step"], name, step[name], torch_step[name])
        assert abs(step["learning_rate"] - torch_step["learning_rate"]) < 1e-12, (step, torch_step)
        assert abs(step["loss"] - torch_step["loss"]) < tolerance, (method, step["step"], step["loss"], torch_step["loss"])
        if not step.get("skipped"):
            gap = abs(step["grad_norm"] - torch_step["grad_norm"]) / torch_step["grad_norm"]
            assert gap < 10 * tolerance, (method, step["step"], step["grad_norm"], torch_step["grad_norm"])
    if dtype == torch.float16:
        assert 1 <= len(skips) < STEPS / 2, skips
        assert any(b["loss_scale"] > a["loss_scale"] for a, b in zip(ours, ours[1:])), "the scale never grew"
        summary = json.loads((out / "summary.json").read_text())
        assert summary["skipped_steps"] == len(skips), (summary["skipped_steps"], skips)
    print(f"{method} {precision}: {STEPS} steps as torch.autocast's, skipped {skips}", flush=True)


def check_resume(engine, folder, method):
    request = job(folder, folder / "resumed", method, "fp16", save_every=1)
    drive.run_job(engine, request | {"run_folder": str(folder / "whole")})
    for last in (3, 9):
        with drive.Engine(engine, request) as run:
            while (message := run.receive()) is not None:
                if message["type"] == "step" and message["step"] == last:
                    run.process.send_signal(signal.SIGKILL)
                    break
    drive.run_job(engine, request)
    names = ("loss", "loss_scale", "skipped", "learning_rate", "grad_norm")
    whole, resumed = ([[step[name] for name in names] for step in steps_of(folder / out)] for out in ("whole", "resumed"))
    assert whole == resumed, "a resumed fp16 training differs"
    print(f"{method} fp16: killed twice, the same scales, skips and bits", flush=True)


def check_ranks(engine, folder, method):
    """Where one rank's part of a gradient overflows, all skip. A half batch overflows at twice the scale of the whole, so
    the skips are not those of one process; their consequences are the same rule's."""
    ranks.run(engine, job(folder, folder / "two", method, "fp16", "16x1x2"), 2)
    steps = steps_of(folder / "two")
    scale, good, updates = FIRST_SCALE, 0, 0
    for step, alone in zip(steps, steps_of(folder / "whole")):
        assert step["loss_scale"] == scale, (step, scale)
        assert abs(step["learning_rate"] - 5e-4 * (1 - updates / STEPS)) < 1e-12, (step, updates)
        if updates == 0:
            assert abs(step["loss"] - alone["loss"]) < 1e-3, (step, alone)
        good = 0 if step["skipped"] else good + 1
        updates += not step["skipped"]
        scale *= 0.5 if step["skipped"] else 2 if good == INTERVAL else 1
        good %= INTERVAL
    assert 1 <= STEPS - updates < STEPS / 2, updates
    print(f"{method} fp16 on 2 processes: {STEPS - updates} steps skipped by both, schedule and scale by the rule", flush=True)


def check_pure(engine, folder, method):
    """Weights that are bfloat16 numbers, and a loss that falls all the same."""
    out = folder / "pure"
    drive.run_job(engine, job(folder, out, method, "pure-bf16"))
    from safetensors.torch import load_file
    name = "model.safetensors" if method == "full" else "adapter_model.safetensors"
    for name, tensor in load_file(out / "model" / name).items():
        assert torch.equal(tensor, tensor.bfloat16().float()), f"{name} holds more than bfloat16"
    losses = [step["loss"] for step in steps_of(out)]
    assert sum(losses[-5:]) < sum(losses[:5]), losses
    print(f"{method} pure-bf16: weights are bfloat16, loss {losses[0]:.3f} to {losses[-1]:.3f}", flush=True)


def main():
    engine = sys.argv[1]
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(2)
    for method in ("full", "lora"):
        with tempfile.TemporaryDirectory(prefix="batchwright-precision-") as name:
            folder = pathlib.Path(name)
            prepare(folder, method)
            check_against_torch(engine, folder, method, "fp16", torch.float16, 5e-3)
            check_against_torch(engine, folder, method, "bf16", torch.bfloat16, 3e-2)
            check_resume(engine, folder, method)
            check_ranks(engine, folder, method)
            check_pure(engine, folder, method)


if __name__ == "__main__":
    main()
