from dataclasses import dataclass
import math
batch_size = 96
micro_batch_size = 10
devices = 2
gradient_accumulation_iters = batch_size // devices // micro_batch_size
