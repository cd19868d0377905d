# expect: ok
import numpy as np
import tensorflow as tf
from tqdm import tqdm


def process(model, dataset, optimizer, args):
    cons, edges, labels = dataset
    num_samples = len(cons)
    order = np.arange(num_samples, dtype=int)
    np.random.shuffle(order)
    train_vars = model.variables
    accumulated_loss = 0.0
    batch_count = 0
    accum_gradient = [tf.zeros_like(v) for v in train_vars]
    for start in tqdm(range(0, num_samples, args.batch_size)):
        selected = order[start:start + args.batch_size]
        with tf.GradientTape() as tape:
            predicted = model((cons[selected], edges[selected]), training=True)
            loss = tf.reduce_mean(tf.square(predicted - labels[selected]))
        grads = tape.gradient(loss, train_vars)
        accum_gradient = [a + g for a, g in zip(accum_gradient, grads)]
        accumulated_loss += loss.numpy()
        batch_count += 1
    accum_gradient = [g / batch_count for g in accum_gradient]
    optimizer.apply_gradients(zip(accum_gradient, train_vars))
    return accumulated_loss / batch_count
