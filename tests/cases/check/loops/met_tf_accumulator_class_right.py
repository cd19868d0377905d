# expect: ok
import tensorflow as tf


class GradientAccumulator:
    def __init__(self):
        self.accumulated_gradients = []
        self.gradient_count = 0

    def accumulate_gradients(self, gradients):
        if self.gradient_count == 0:
            self.accumulated_gradients = [tf.Variable(tf.zeros_like(g)) for g in gradients]
        for i, g in enumerate(gradients):
            self.accumulated_gradients[i].assign_add(g)
        self.gradient_count += 1

    def average_and_apply(self, optimizer, model_variables):
        averaged_grads = [g / self.gradient_count for g in self.accumulated_gradients]
        optimizer.apply_gradients(zip(averaged_grads, model_variables))
        self.gradient_count = 0
        for g in self.accumulated_gradients:
            g.assign(tf.zeros_like(g))


def train_with_accumulation(model, dataset, optimizer, accumulation_steps=4):
    accumulator = GradientAccumulator()
    for step, (x_batch, y_batch) in enumerate(dataset):
        with tf.GradientTape() as tape:
            predictions = model(x_batch, training=True)
            loss = tf.keras.losses.sparse_categorical_crossentropy(y_batch, predictions)
            loss = tf.reduce_mean(loss)
        gradients = tape.gradient(loss, model.trainable_variables)
        accumulator.accumulate_gradients(gradients)
        if (step + 1) % accumulation_steps == 0:
            accumulator.average_and_apply(optimizer, model.trainable_variables)
            print(f"Step {step + 1}, Loss: {loss:.4f}")
