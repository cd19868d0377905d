"""A training script that fails after its first steps: failing_script.py HOW MICRO ACCUM"""
import os
import subprocess
import sys
import tempfile
import time
from multiprocessing import shared_memory

import torch

how = sys.argv[1]
torch.set_num_threads(1)
model = torch.nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def step():
    for _ in range(int(sys.argv[3])):
        model(torch.randn(int(sys.argv[2]), 8)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()


def gloo_timeout():
    import datetime

    import torch.distributed as distributed
    rank = int(os.environ["RANK"])
    distributed.init_process_group("gloo", timeout=datetime.timedelta(seconds=2))
    distributed.barrier()
    if rank == 1:
        time.sleep(600)  # it never joins
    distributed.all_reduce(torch.zeros(1))


step()
if how == "cpu_allocator":
    torch.empty(1 << 60, dtype=torch.uint8)
elif how == "cuda_allocator":
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
elif how == "cublas":
    raise RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`")
elif how == "cudnn":
    raise RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED")
elif how == "limit":
    keep = bytearray(int(sys.argv[4]) << 20)
    keep[:: 4096] = b"x" * len(keep[:: 4096])
elif how == "gloo":
    gloo_timeout()
elif how == "traceback":
    raise KeyError("no such column")
elif how == "hang":
    time.sleep(600)
elif how == "input":
    input("Continue? [y/n] ")
elif how == "segfault":
    os.kill(os.getpid(), 11)
elif how == "litter":  # processes of another session, shared memory and temporary files
    child = subprocess.Popen(["sleep", "600"], start_new_session=True)
    memory = shared_memory.SharedMemory(create=True, size=4096)
    folder = tempfile.mkdtemp()
    print(f"LITTER {child.pid} /dev/shm/{memory.name} {folder}", flush=True)
    sys.stdout.flush()
    time.sleep(600)
for _ in range(100):
    step()
