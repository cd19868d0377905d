# expect: mistake apply_inside_loop
import tensorflow as tf


def train_step(model, optimizer, images, labels, num_splits):
    image_parts = tf.split(images, num_splits)
    label_parts = tf.split(labels, num_splits)
    accumulated = [tf.zeros_like(v) for v in model.trainable_variables]
    for x, y in zip(image_parts, label_parts):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.keras.losses.sparse_categorical_crossentropy(y, model(x, training=True)))
        grads = tape.gradient(loss, model.trainable_variables)
        accumulated = [a + g / num_splits for a, g in zip(accumulated, grads)]
        optimizer.apply_gradients(zip(accumulated, model.trainable_variables))
