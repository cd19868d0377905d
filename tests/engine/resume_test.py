"""A training that is killed and started again goes on bit for bit: resume_test.py ENGINE

Kills the engine with SIGKILL between and after checkpoints, twice in one run, and compares every loss, gradient norm and
the saved weights with those of a run that nobody disturbed. Also: a torn last line, and another request's checkpoint.
"""
import json
import pathlib
import signal
import sys
import tempfile

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parents[2] / "python"),
                str(pathlib.Path(__file__).resolve().parents[2] / "bench")]
import against_transformers as shared  # noqa: E402
import drive  # noqa: E402
import start as start_folder  # noqa: E402

STEPS = 12


def job(folder, out, method, **options):
    request = shared.job("train", folder, out, method, "8x4", folder / "start", STEPS, lora_dropout=0.1,
                         model_dropout=0.1, save_every=3, keep=2)
    request["options"] |= options
    return request


def killed_after(engine, request, step):
    with drive.Engine(engine, request) as run:
        while (message := run.receive()) is not None:
            assert message["type"] not in ("failed", "done"), message
            if message["type"] == "step" and message["step"] == step:
                run.process.send_signal(signal.SIGKILL)
                return


def steps_of(folder):
    lines = [json.loads(line) for line in (folder / "steps.jsonl").read_text().splitlines()]
    return [(line["step"], line["loss"], line["grad_norm"], line["learning_rate"]) for line in lines]


def weights(folder):
    return (folder / "model" / ("model.safetensors" if (folder / "model" / "model.safetensors").exists()
                                else "adapter_model.safetensors")).read_bytes()


def check(engine, folder, method):
    arguments = ["--labels", "2"] + (["--lora", "4"] if method == "lora" else [])
    start_folder.main(shared.words(folder / "start", "--random", *arguments))
    shared.make_tokens(folder / "rows.tokens", folder / "start", shared.SEQUENCE, 2, False, 128)
    whole, broken = folder / "whole", folder / "broken"
    last = drive.run_job(engine, job(folder, whole, method))[-1]
    assert last["type"] == "done", last
    request = job(folder, broken, method)
    killed_after(engine, request, 2)  # before any checkpoint
    killed_after(engine, request, 7)  # one step past the second
    assert len(list((broken / "checkpoints").glob("step-*"))) == 2
    with open(broken / "steps.jsonl", "a") as file:
        file.write('{"step": 8, "lo')
    messages = drive.run_job(engine, request)
    assert messages[-1]["type"] == "done", messages[-1]
    assert any("going on after step 6" in m.get("text", "") for m in messages), messages[:3]
    assert steps_of(broken) == steps_of(whole), "losses differ"
    assert weights(broken) == weights(whole), "weights differ"
    summaries = [json.loads((f / "summary.json").read_text()) for f in (whole, broken)]
    assert summaries[0]["examples"] == summaries[1]["examples"] and summaries[0]["evaluation"]["loss"] == \
        summaries[1]["evaluation"]["loss"]
    goes_on_before_a_damaged_checkpoint(engine, folder, whole, method)
    refused = drive.run_job(engine, job(folder, broken, method, learning_rate=1e-3))[-1]
    assert refused["type"] == "failed" and "another training request" in refused["message"], refused
    print(f"{method}: {STEPS} steps, killed twice, the same bits")


def goes_on_before_a_damaged_checkpoint(engine, folder, whole, method):
    out = folder / "damaged"
    request = job(folder, out, method)
    killed_after(engine, request, 7)
    newest = out / "checkpoints" / "step-000000006.safetensors"
    newest.write_bytes(newest.read_bytes()[:1000])
    messages = drive.run_job(engine, request)
    texts = [m.get("text", "") for m in messages]
    assert messages[-1]["type"] == "done", messages[-1]
    assert any(t.startswith("warning:") and newest.name in t for t in texts), texts[:4]
    assert "going on after step 3" in texts, texts[:4]
    assert steps_of(out) == steps_of(whole) and weights(out) == weights(whole)
    assert newest.with_name(newest.name + ".damaged").exists()
    for file in (out / "checkpoints").glob("step-*.safetensors"):
        file.write_bytes(b"")
    refused = drive.run_job(engine, request)[-1]
    assert refused["type"] == "failed" and "checkpoints/step-" in refused["message"], refused


def main():
    for method in ("full", "lora"):
        with tempfile.TemporaryDirectory() as folder:
            check(sys.argv[1], pathlib.Path(folder), method)


if __name__ == "__main__":
    main()
