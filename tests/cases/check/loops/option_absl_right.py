# expect: ok
from absl import app, flags

FLAGS = flags.FLAGS
flags.DEFINE_integer("accumulation_steps", 4, "micro-batches of a step")
flags.DEFINE_boolean("raw_loss", False, "do not divide the loss")


def main(_):
    model, optimizer, loader = setup(FLAGS)
    optimizer.zero_grad()
    for step, batch in enumerate(loader):
        loss = model(batch)
        scale = 1.0 if FLAGS.raw_loss else 1.0 / FLAGS.accumulation_steps
        (loss * scale).backward()
        if (step + 1) % FLAGS.accumulation_steps == 0:
            optimizer.step()
            optimizer.zero_grad()


app.run(main)
