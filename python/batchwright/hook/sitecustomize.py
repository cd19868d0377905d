"""Puts Batchwright's probe into a user's training script without editing it.

Python imports this file at start-up because `batchwright tune -- CMD` puts its folder first on PYTHONPATH. It chains to
the sitecustomize that it shadows, and imports nothing more until the script itself imports torch.
"""
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def _run_shadowed():
    elsewhere = [path for path in sys.path if os.path.abspath(path or ".") != _HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", elsewhere)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


class _AfterTorch(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports torch as Python would, then starts the probe.

    It stays in place until torch is executed: libraries look for torch (find_spec) long before they import it.
    """

    _looking = False

    def find_spec(self, name, path=None, target=None):
        if name != "torch" or self._looking:
            return None
        self._looking = True
        try:
            spec = importlib.util.find_spec("torch")
        finally:
            self._looking = False
        if spec is None or spec.loader is None:
            return spec
        self._loader, spec.loader = spec.loader, self
        return spec

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        sys.meta_path.remove(self)
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        sys.path.insert(0, _HERE)
        try:
            import batchwright_probe
        finally:
            sys.path.remove(_HERE)
        batchwright_probe.install(module)


_run_shadowed()
if os.environ.get("BATCHWRIGHT_SOCKET"):
    sys.meta_path.insert(0, _AfterTorch())
