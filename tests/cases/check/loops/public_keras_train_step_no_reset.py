# expect: mistake missing_zero_grad
import tensorflow as tf


class AccumModel(tf.keras.Model):
    def __init__(self, accum_steps, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.accum_steps = accum_steps
        self.counter = tf.Variable(0, dtype=tf.int32, trainable=False)
        self.buffers_ = [tf.Variable(tf.zeros_like(v), trainable=False) for v in self.trainable_variables]

    def train_step(self, data):
        x, y = data
        self.counter.assign_add(1)
        with tf.GradientTape() as tape:
            loss = self.compute_loss(x, y, self(x, training=True)) / self.accum_steps
        grads = tape.gradient(loss, self.trainable_variables)
        for b, g in zip(self.buffers_, grads):
            b.assign_add(g)
        if tf.equal(self.counter % self.accum_steps, 0):
            self.optimizer.apply_gradients(zip(self.buffers_, self.trainable_variables))
            self.counter.assign(0)
        return {"loss": loss * self.accum_steps}
