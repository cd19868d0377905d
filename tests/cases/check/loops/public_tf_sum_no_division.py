# expect: mistake no_division
import tensorflow as tf


def train_epoch(model, opt, ds, loss_obj, accum_steps):
    accum_grads = [tf.Variable(tf.zeros_like(v), trainable=False) for v in model.trainable_variables]
    for i, (x, y) in enumerate(ds):
        with tf.GradientTape() as tape:
            loss = loss_obj(y, model(x, training=True))
        grads = tape.gradient(loss, model.trainable_variables)
        for acc, g in zip(accum_grads, grads):
            acc.assign_add(g)
        if (i + 1) % accum_steps == 0:
            opt.apply_gradients(zip(accum_grads, model.trainable_variables))
            for acc in accum_grads:
                acc.assign(tf.zeros_like(acc))
