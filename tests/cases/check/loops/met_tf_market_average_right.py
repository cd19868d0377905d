# expect: ok
import tensorflow as tf


class MarketTrainer:
    def __init__(self, model, accum_steps):
        self.model = model
        self.accum_steps = accum_steps

    def fit(self, dataset, optimizer, loss_fn, epochs, steps_per_epoch):
        train_loss = tf.keras.metrics.Mean()
        for epoch in range(epochs):
            train_loss.reset_states()
            accumulated_gradients = None
            accumulation_count = 0
            for step in range(steps_per_epoch):
                x_batch, y_batch = next(dataset)
                if accumulated_gradients is None:
                    accumulated_gradients = [tf.zeros_like(var) for var in self.model.trainable_variables]
                with tf.GradientTape() as tape:
                    y_pred = self.model(x_batch, training=True)
                    batch_loss = loss_fn(y_batch, y_pred)
                gradients = tape.gradient(batch_loss, self.model.trainable_variables)
                for i, grad in enumerate(gradients):
                    if grad is not None:
                        accumulated_gradients[i] += grad
                train_loss.update_state(batch_loss)
                accumulation_count += 1
                is_last_batch = (step == steps_per_epoch - 1)
                if accumulation_count >= self.accum_steps or is_last_batch:
                    for i in range(len(accumulated_gradients)):
                        accumulated_gradients[i] = accumulated_gradients[i] / accumulation_count
                    optimizer.apply_gradients(zip(accumulated_gradients, self.model.trainable_variables))
                    accumulated_gradients = None
                    accumulation_count = 0
            print(epoch, train_loss.result().numpy())
