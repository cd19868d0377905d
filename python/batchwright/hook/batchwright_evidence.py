"""What `batchwright verify -- CMD` compares: for each optimizer step the losses that went into backward, the gradient
norms after each of them, which examples were seen, and what was done to the schedule and to the gradients.

Unlike the probe it costs time, and it may turn dropout off (BATCHWRIGHT_DROPOUT=off): with dropout on, two splits of the
same batch differ by chance and nothing could be compared.
"""
import functools
import json
import os
import sys

_DROPOUTS = ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout")
_MIX = 0x9E3779B97F4A7C15 - (1 << 64)  # the golden ratio's fraction as a signed 64-bit number


class Evidence:
    def __init__(self, torch, probe):
        self.torch, self.probe = torch, probe
        self.functional = torch.nn.functional
        self.parameters = {}
        self.facts = {"dropout": False, "batch_statistics": False, "reduced_precision": False, "trainer": ""}
        self.drops = os.environ.get("BATCHWRIGHT_DROPOUT") != "off"
        self.looked = False
        self._new_window()

    def _new_window(self):
        self.micro, self.data, self.labels = [], 0, 0
        self.scheduler_steps = self.clippings = 0

    # ---- what the probe tells
    def before_forward(self, tensor, kwargs):
        if not self.looked:
            self._look_at_model()
        if self.torch.is_autocast_enabled("cpu") or self.torch.is_autocast_enabled("cuda"):
            self.facts["reduced_precision"] = True
        if tensor is not None:
            mask = kwargs.get("attention_mask") if kwargs else None
            self.data = (self.data + self._fingerprint(tensor, mask)) % (1 << 62)

    def before_backward(self, root):
        value = float(root.detach()) / self._scale() if self.torch.is_tensor(root) and root.numel() == 1 else None
        self.micro.append({"loss": value, "gradient_before": self._norm(), "gradient_after": None,
                           "examples": self.probe.tape.examples - sum(m["examples"] for m in self.micro),
                           "labels": self.labels})
        self.labels = 0
        if not self.facts["trainer"]:
            self.facts["trainer"] = _trainer_on_stack()

    def after_backward(self):
        self.micro[-1]["gradient_after"] = self._norm()

    def before_clipping(self):
        if self.micro:
            self.clippings += 1

    def take(self):
        for micro in self.micro:
            for key, value in micro.items():
                if value is not None and value - value != 0:
                    micro[key] = None  # JSON has no infinities
        text = json.dumps({"micro_steps": self.micro, "data": f"{self.data:016x}",
                           "scheduler_steps": self.scheduler_steps, "clippings": self.clippings, "facts": self.facts})
        self._new_window()
        return text

    # ---- measures
    def _scale(self):
        return 1.0 if self.probe.loss_scale is None else float(self.probe.loss_scale)

    def _norm(self):
        total = 0.0
        for parameter in self.parameters.values():
            gradient = parameter.grad
            if gradient is None:
                continue
            if gradient.is_sparse:
                gradient = gradient.coalesce().values()
            total += float(self.torch.linalg.vector_norm(gradient.detach(), dtype=self.torch.float64)) ** 2
        return total**0.5 / self._scale()

    def _fingerprint(self, tensor, mask):
        """A sum over all values, so neither the cut of a window nor the order in it changes it; padding counts nothing."""
        torch = self.torch
        values = tensor.detach()
        if values.is_floating_point():
            values = values.float().contiguous().view(torch.int32)
        values = values.to(torch.int64)
        mixed = (values + 1) * _MIX
        mixed = mixed ^ (mixed >> 29)
        if mask is not None and mask.shape == values.shape:
            mixed = mixed * (mask != 0)
        elif not tensor.is_floating_point():
            padding = getattr(getattr(self.probe.outermost, "config", None), "pad_token_id", None) or 0
            mixed = mixed * (values != padding)
        return int(mixed.sum()) % (1 << 62)

    def _look_at_model(self):
        self.looked = True
        torch = self.torch
        for module in self.probe.outermost.modules():
            if isinstance(module, torch.nn.modules.batchnorm._BatchNorm) and module.training:
                self.facts["batch_statistics"] = True
            if isinstance(module, torch.nn.RNNBase) and module.dropout:
                if self.drops:
                    self.facts["dropout"] = True
                else:
                    module.dropout = 0.0
            for parameter in module.parameters(recurse=False):
                if parameter.dtype in (torch.float16, torch.bfloat16):
                    self.facts["reduced_precision"] = True

    # ---- patches
    def install(self):
        self._dropout()
        self._losses()
        self._schedulers()
        self._collect_parameters()

    def _dropout(self):
        for name in _DROPOUTS:
            setattr(self.functional, name, self._without_dropout(getattr(self.functional, name)))
        self.torch.dropout = self._without_builtin_dropout(self.torch.dropout)
        original = self.functional.scaled_dot_product_attention

        @functools.wraps(original)
        def scaled_dot_product_attention(query, key, value, attn_mask=None, dropout_p=0.0, *args, **kwargs):
            return original(query, key, value, attn_mask, self._rate(dropout_p, True), *args, **kwargs)

        self.functional.scaled_dot_product_attention = scaled_dot_product_attention

    def _rate(self, rate, training):
        if not (training and rate):
            return rate
        if self.drops:
            self.facts["dropout"] = True
            return rate
        return 0.0

    def _without_dropout(self, original):
        @functools.wraps(original)
        def dropout(input, p=0.5, training=True, inplace=False):
            rate = self._rate(p, training)
            return original(input, rate, bool(training and rate), inplace)

        return dropout

    def _without_builtin_dropout(self, original):
        def dropout(input, p, train):
            rate = self._rate(p, train)
            return original(input, rate, bool(train and rate))

        return dropout

    def _losses(self):
        """How many labels each loss averages over: a mean of means of unequal counts is not the mean of the whole."""
        for name in ("cross_entropy", "nll_loss"):
            setattr(self.functional, name, self._counting(getattr(self.functional, name)))

    def _counting(self, original):
        @functools.wraps(original)
        def loss(input, target, *args, **kwargs):
            if self.torch.is_grad_enabled():
                ignored = kwargs.get("ignore_index", -100)
                counts = target.is_floating_point()
                self.labels += target.shape[0] if counts else int((target != ignored).sum())
            return original(input, target, *args, **kwargs)

        return loss

    def _schedulers(self):
        kind = self.torch.optim.lr_scheduler.LRScheduler
        original = kind.step

        @functools.wraps(original)
        def step(scheduler, *args, **kwargs):
            if self.probe.tape.begin is not None or self.probe.tape.step_end is not None:
                self.scheduler_steps += 1
            return original(scheduler, *args, **kwargs)

        kind.step = step

    def _collect_parameters(self):
        kind = self.torch.optim.Optimizer
        original = kind.add_param_group

        @functools.wraps(original)
        def add_param_group(optimizer, group):
            result = original(optimizer, group)
            for parameter in optimizer.param_groups[-1]["params"]:
                self.parameters[id(parameter)] = parameter
            return result

        kind.add_param_group = add_param_group


def _trainer_on_stack():
    """The framework's trainer that runs the loop, with its release; empty for a loop of the script's own."""
    transformers = sys.modules.get("transformers")
    base = getattr(sys.modules.get("transformers.trainer"), "Trainer", None)
    frame = sys._getframe(1)
    while base is not None and frame is not None:
        found = frame.f_locals.get("self")
        if isinstance(found, base):
            own = [name for name in ("compute_loss", "training_step", "prediction_step")
                   if getattr(type(found), name, None) is not getattr(base, name, None)]
            name = f"transformers {transformers.__version__} {type(found).__name__}"
            return f"{name}, which overrides {own[0]}" if own else name
        frame = frame.f_back
    return ""
