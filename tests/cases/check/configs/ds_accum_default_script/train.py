from accelerate import Accelerator

def main():
    accelerator = Accelerator(gradient_accumulation_steps=8, mixed_precision="bf16")
    model, optimizer, loader = accelerator.prepare(build())
