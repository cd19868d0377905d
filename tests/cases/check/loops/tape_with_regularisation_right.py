# expect: ok
import tensorflow as tf


def fit(self, batches, optimizer):
    self.model = build_model(self.settings)
    for x, y in batches:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.keras.losses.binary_crossentropy(y, self.model(x)))
            loss = loss + tf.reduce_sum(self.model.losses)
        grads = tape.gradient(loss, self.model.trainable_variables)
        optimizer.apply_gradients(zip(grads, self.model.trainable_variables))
