# expect: ok
import tensorflow as tf


class GradientAccumulator:
    def __init__(self, accum_steps):
        self.accum_steps = tf.constant(accum_steps, dtype=tf.int32)
        self.accum_step_counter = tf.Variable(0, dtype=tf.int32, trainable=False)

    def build(self, optimizer, model):
        self.optimizer = optimizer
        self.model = model
        self.gradient_accumulation = [tf.Variable(tf.zeros_like(v, dtype=tf.float32), trainable=False) for v in model.trainable_variables]

    def apply_gradients(self, gradients):
        self.accum_step_counter.assign_add(1)
        for i in range(len(self.gradient_accumulation)):
            self.gradient_accumulation[i].assign_add(gradients[i], read_value=False)
        tf.cond(tf.equal(self.accum_step_counter, self.accum_steps), true_fn=self.apply_accu_gradients, false_fn=lambda: None)

    def apply_accu_gradients(self):
        for i in range(len(self.gradient_accumulation)):
            self.gradient_accumulation[i].assign(self.gradient_accumulation[i] / tf.cast(self.accum_steps, dtype=tf.float32), read_value=False)
        self.optimizer.apply_gradients(zip(self.gradient_accumulation, self.model.trainable_variables))
        self.accum_step_counter.assign(0)
        for i in range(len(self.gradient_accumulation)):
            self.gradient_accumulation[i].assign(tf.zeros_like(self.model.trainable_variables[i], dtype=tf.float32), read_value=False)


def train(model, optimizer, dataset, epochs, accum_steps):
    accumulator = GradientAccumulator(accum_steps)
    accumulator.build(optimizer, model)
    for epoch in range(epochs):
        for x, y in dataset:
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.keras.losses.sparse_categorical_crossentropy(y, model(x, training=True)))
            accumulator.apply_gradients(tape.gradient(loss, model.trainable_variables))
