# expect: mistake off_by_one_boundary
from time import perf_counter

import ignite.engine


def step(engine, tensors, train):
    stage = engine.state.stage
    model = engine.state.model
    tensors = stage.batch_preprocessing_in_step(tensors)
    model.train(train)
    start = perf_counter()
    tensors = model(tensors)
    engine.state.compute_time += perf_counter() - start
    if train:
        tensors = engine.state.criterion(tensors)
        loss = tensors[stage.criterion_setup.name] / stage.batch_multiplier
        loss.backward()
        if (engine.state.iteration + 1) % stage.batch_multiplier == 0:
            engine.state.optimizer.step()
            engine.state.optimizer.zero_grad()
    return {name: t.detach().cpu() for name, t in tensors.items()}


def training_step(engine: ignite.engine.Engine, tensors):
    return step(engine, tensors, train=True)
