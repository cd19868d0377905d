# expect: mistake no_division
import tensorflow as tf


def train(model, data, optimizer, virtual_batch_size=None, num_epochs=10):
    tgts = model.gather()
    tr_steps = len(data)
    for epoch in range(num_epochs):
        cgrds = None
        metrics = [0] * 3
        for step, batch in enumerate(data):
            with tf.GradientTape() as tape:
                pred, body = model(batch["shapes"], batch["poses"])
                L_edge, E_edge = edge_loss(pred, batch["edges"])
                L_bend, E_bend = bend_loss(pred, batch["faces"])
                loss = 10 * L_edge + 0.5 * L_bend
            grads = tape.gradient(loss, tgts)
            if virtual_batch_size is not None:
                if cgrds is None:
                    cgrds = grads
                else:
                    cgrds = [c + g for c, g in zip(cgrds, grads)]
                if (step + 1) % virtual_batch_size == 0:
                    optimizer.apply_gradients(zip(cgrds, tgts))
                    cgrds = None
            else:
                optimizer.apply_gradients(zip(grads, tgts))
            metrics[0] += E_edge.numpy()
            metrics[1] += E_bend.numpy()
        print([m / (step + 1) for m in metrics])
