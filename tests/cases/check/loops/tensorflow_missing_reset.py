# expect: mistake missing_zero_grad
import tensorflow as tf

accumulated = [tf.Variable(tf.zeros_like(v), trainable=False) for v in model.trainable_variables]

def micro_step(x, y):
    with tf.GradientTape() as tape:
        loss = loss_object(y, model(x, training=True)) / accumulation_steps
    gradients = tape.gradient(loss, model.trainable_variables)
    for total, gradient in zip(accumulated, gradients):
        total.assign_add(gradient)

def update():
    optimizer.apply_gradients(zip(accumulated, model.trainable_variables))

for i, (x, y) in enumerate(dataset):
    micro_step(x, y)
    if (i + 1) % accumulation_steps == 0:
        update()
