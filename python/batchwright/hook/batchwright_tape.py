"""What the entries of the tape mean, which batchwright_patches writes while the script trains: it makes steps of them."""


class Tape:
    """The methods named on_... are what the entries of the watch call.

    Moments are what `mark` gives: nanoseconds, or CUDA events. Their differences and sums are times of a phase. A step
    that has ended becomes a row of the device (batchwright_device).
    """

    # Python looks up the attributes of an object with more than 30 of them the slow way, unless they are slots.
    __slots__ = ("device", "evidence", "explicit", "steps", "begin", "step_end", "optimizers_of_a_step",
                 "last_optimizer", "last_optimizers", "optimizers", "micro_steps", "examples", "padded", "tokens",
                 "micro_examples", "micro_padded", "compiled_examples", "input", "forward", "backward", "optimizer",
                 "collective", "forward_begin", "backward_begin", "optimizer_begin", "inside", "loss", "norm_squared", "rate")

    def __init__(self):
        self.device = None  # known at the first moment
        self.evidence = None  # of `verify`
        self.explicit = False  # the script says itself where its steps end (batchwright.step)
        self.steps = 0
        self.begin = self.step_end = None
        self.optimizers_of_a_step = 1
        self.last_optimizer, self.last_optimizers = None, set()
        self._new_window()

    def _new_window(self):
        self.micro_steps = self.examples = self.padded = 0
        self.micro_examples = self.micro_padded = self.compiled_examples = 0
        self.input = self.forward = self.backward = self.optimizer = self.collective = 0
        self.forward_begin = self.loss = self.norm_squared = self.rate = self.tokens = None
        self.optimizers = None

    # ---- what happened, in the order of the tape
    def on_forward(self, now, shape, tokens):
        if self.forward_begin is None:
            self.forward_begin = now
            if self.begin is None:
                self.begin = now
        # One micro-step may call the model several times (two towers, time steps): they share its examples.
        if shape:
            if shape[0] > self.micro_examples:
                self.micro_examples = shape[0]
            if tokens and len(shape) == 2:
                self.micro_padded += shape[0] * shape[1]

    def on_compiled(self, now, shape, _):
        """A compiled function is called, and may call the model inside, where nobody sees it."""
        if self.forward_begin is None:
            self.forward_begin = now
            if self.begin is None:
                self.begin = now
        if shape and shape[0] > self.compiled_examples:
            self.compiled_examples = shape[0]

    def on_backward(self, now, _, __):
        self.backward_begin = now
        if self.begin is None:
            self.begin = now
        if self.forward_begin is not None:
            self.forward += now - self.forward_begin
            self.forward_begin = None
        self.micro_steps += 1
        self.examples += self.micro_examples or self.compiled_examples
        self.padded += self.micro_padded
        self.micro_examples = self.micro_padded = self.compiled_examples = 0

    def on_backward_end(self, now, _, __):
        self.backward += now - self.backward_begin

    def begins_window(self):
        """Whether nothing is left of an earlier window, and nothing asks for more than on_window is told."""
        return (self.step_end is not None and not self.explicit and self.evidence is None and self.optimizers_of_a_step == 1
                and not self.micro_steps and self.forward_begin is self.tokens is self.loss is self.norm_squared is self.rate
                is None and not self.input and not self.collective)

    def on_window(self, now, optimizer, micro_steps, examples, padded, forward, backward, optimizing):
        """What the entries from the first forward to the step's end would do one by one; the recorder has summed them."""
        self.last_optimizer = optimizer
        self.steps += 1
        self.device.rows.append((self.steps, micro_steps, examples, padded, padded, now - self.step_end, 0, forward, backward,
                                 optimizing, 0, None, None, None, None))
        self.step_end = now

    def on_loss(self, _, loss, __):
        self.loss = loss if self.loss is None else self.loss + loss

    def on_norm(self, _, norm, __):
        self.norm_squared = norm * norm if self.norm_squared is None else self.norm_squared + norm * norm

    def on_rate(self, _, rate, __):
        self.rate = rate

    def on_tokens(self, _, tokens, __):
        self.tokens = tokens if self.tokens is None else self.tokens + tokens

    def on_waited(self, begin, end, _):
        """For the next micro-batch, seen from the host."""
        if self.begin is not None:
            self.input += end - begin

    def on_collective(self, begin, end, _):
        if self.begin is not None or self.step_end is not None:
            self.collective += end - begin

    def on_step(self, now, _, __):
        self.optimizer_begin = now
        # Lightning runs forward and backward in a closure that it gives to optimizer.step().
        self.inside = self.forward, self.backward, self.input

    def on_step_end(self, now, optimizer, _):
        if not self.micro_steps:
            self._another_optimizer(optimizer, now)
            return
        self.optimizer += now - self.optimizer_begin
        forward, backward, waited = self.inside
        if self.backward is not backward:
            self.optimizer -= (self.forward - forward) + (self.backward - backward) + (self.input - waited)
        if self.optimizers_of_a_step > 1:
            self.optimizers = {id(optimizer)} if self.optimizers is None else self.optimizers | {id(optimizer)}
            if len(self.optimizers) < self.optimizers_of_a_step:
                return
        self.last_optimizer = optimizer
        if not self.explicit:
            self._close(now)

    def _another_optimizer(self, optimizer, now):
        """It belongs to the step that was just reported: from now on a step waits for all of them."""
        if self.steps and optimizer is not self.last_optimizer:
            self.last_optimizers |= {id(self.last_optimizer), id(optimizer)}
            self.optimizers_of_a_step = len(self.last_optimizers)
            self.step_end = now

    def on_marked(self, now, said, _):
        """batchwright.step(): from the first call on, steps end where the script says so."""
        seen_already = not self.explicit and self.steps > 0 and not self.micro_steps
        self.explicit = True
        if seen_already:
            return
        if self.begin is None:
            self.begin = self.step_end = now  # nothing of this step was seen: it starts the clock
            return
        loss, examples, tokens, micro_steps = said
        self.loss = loss if loss is not None else self.loss
        self.examples = examples if examples is not None else self.examples
        if tokens is not None:
            self.padded = self.tokens = tokens
        self.micro_steps = micro_steps or self.micro_steps
        self._close(now)

    def on_resumed(self, now, _, __):
        """What reporting took is not the script's."""
        if not self.micro_steps and self.step_end is not None:
            self.step_end = now

    def _close(self, now):
        self.steps += 1
        evidence = self.evidence.take() if self.evidence is not None else None
        begin = self.step_end if self.step_end is not None else self.begin
        tokens = self.padded if self.tokens is None else self.tokens
        self.device.rows.append((self.steps, self.micro_steps, self.examples, tokens, self.padded, now - begin,
                                 self.input, self.forward, self.backward, self.optimizer, self.collective, self.loss,
                                 self.norm_squared, self.rate, evidence))
        self._new_window()
        self.step_end = now
