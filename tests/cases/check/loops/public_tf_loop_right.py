# expect: ok
import tensorflow as tf

optimizer = tf.keras.optimizers.Adam(1e-4)
ACCUM = 4


@tf.function
def grads_of(model, images, labels):
    with tf.GradientTape() as tape:
        logits = model(images, training=True)
        loss = tf.reduce_mean(tf.keras.losses.sparse_categorical_crossentropy(labels, logits, from_logits=True))
    return loss, tape.gradient(loss, model.trainable_variables)


def train(model, dataset, epochs):
    for epoch in range(epochs):
        accumulated = [tf.zeros_like(v) for v in model.trainable_variables]
        for step, (images, labels) in enumerate(dataset):
            loss, grads = grads_of(model, images, labels)
            accumulated = [a + g / ACCUM for a, g in zip(accumulated, grads)]
            if (step + 1) % ACCUM == 0:
                optimizer.apply_gradients(zip(accumulated, model.trainable_variables))
                accumulated = [tf.zeros_like(v) for v in model.trainable_variables]
            tf.print("loss", loss)
