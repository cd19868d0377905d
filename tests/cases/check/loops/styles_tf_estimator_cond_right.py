# expect: ok
import tensorflow as tf


class Trainer:
    def __init__(self, model, optimizer, steps_per_update):
        self.model = model
        self.optimizer = optimizer
        self.steps_per_update = steps_per_update
        self.grads = [tf.Variable(tf.zeros_like(v), trainable=False) for v in model.trainable_variables]

    def forward(self, x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.keras.losses.categorical_crossentropy(y, self.model(x, training=True)))
            loss = loss / self.steps_per_update
        return tape.gradient(loss, self.model.trainable_variables)

    def accumulate(self, x, y):
        for buffer, grad in zip(self.grads, self.forward(x, y)):
            buffer.assign_add(grad)

    def apply(self):
        self.optimizer.apply_gradients(zip(self.grads, self.model.trainable_variables))
        for buffer in self.grads:
            buffer.assign(tf.zeros_like(buffer))

    def fit(self, dataset, epochs):
        for _ in range(epochs):
            n = 0
            for x, y in dataset:
                self.accumulate(x, y)
                n += 1
                if n % self.steps_per_update == 0:
                    self.apply()
            if n % self.steps_per_update != 0:
                self.apply()
