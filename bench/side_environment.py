"""A Python environment for a peer that must not touch .venv: it sees .venv's packages, and its own come first."""
import pathlib
import site
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def python_with(name, *requirements):
    """The interpreter of build/venvs/NAME, made when it is not there."""
    folder = ROOT / "build" / "venvs" / name
    python, stamp = folder / "bin" / "python", folder / "installed"
    if stamp.exists() and stamp.read_text() == "\n".join(requirements):
        return python
    print(f"making {folder.relative_to(ROOT)} with {', '.join(requirements)}", file=sys.stderr)
    subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
    packages = next(folder.glob("lib/python3*/site-packages"))
    (packages / "base.pth").write_text("\n".join(site.getsitepackages()) + "\n")
    subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *requirements], check=True)
    stamp.write_text("\n".join(requirements))
    return python
