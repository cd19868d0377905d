"""This machine and this project's engine: every exact split of an effective batch of 32, measured and predicted.

The engine runs each split by `batchwright tune --run`, all splits in interleaved rounds; plan answers the same question
for the CPU after `batchwright calibrate`. Printed: measured and predicted peak and step time of every split."""
import json
import os
import subprocess
import tempfile

EFFECTIVE_BATCH, LENGTH = 32, 128


def texts(path, folder):
    """Rows long enough that every example is cut at LENGTH tokens: lengths then are the same for both sides."""
    words = [word for line in open(path) for word in json.loads(line)["text"].split()]
    target = os.path.join(folder, "long.jsonl")
    with open(target, "w") as file:
        for i in range(256):
            text = " ".join(words[(i * 160 + k) % len(words)] for k in range(160))
            file.write(json.dumps({"text": text, "label": i % 2}) + "\n")
    return target


def measured(program, model, data, folder):
    run = os.path.join(folder, "run")
    command = [program, "tune", model, data, "--effective-batch", str(EFFECTIVE_BATCH), "--lora", "16", "--max-length", str(LENGTH),
               "--layout", "packed", "--budget", "120s", "--no-cache", "--run", run, "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    return {t["micro_batch"]: t for t in json.loads(done.stdout)["trials"] if t["outcome"] == "measured"}


def compare(program, model, data):
    with tempfile.TemporaryDirectory() as folder:
        os.environ["BATCHWRIGHT_CALIBRATION"] = os.path.join(folder, "calibration.json")
        subprocess.run([program, "calibrate", "--budget", "20s", "--json"], check=True, capture_output=True)
        trials = measured(program, model, texts(data, folder), folder)
        request = dict(model=model, task="sequence-classification", method="lora", lora_rank=16, framework="native", gpu="cpu",
                       effective_batch=EFFECTIVE_BATCH, seq_len=LENGTH, counter="allocated")
        done = subprocess.run([program, "plan", "--batch", "-"], input=json.dumps(request) + "\n", capture_output=True, text=True)
        answer = json.loads(done.stdout)
    for split in answer["splits"]:
        trial = trials.get(split["micro_batch"])
        if trial is None:
            print(f"{split['micro_batch']:3}x{split['accumulation_steps']:<3} was not measured")
            continue
        peak, seconds = trial["peak_bytes"], trial["step_seconds"]["median"]
        print(f"{split['micro_batch']:3}x{split['accumulation_steps']:<3} peak {peak / 2**20:7.1f} MiB, predicted "
              f"{100 * (split['peak_bytes']['mid'] / peak - 1):+5.1f} %; step {1e3 * seconds:7.1f} ms, predicted "
              f"{100 * (split['step_seconds']['mid'] / seconds - 1):+5.1f} %")
