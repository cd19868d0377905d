"""Every room opens with a README of at most 15 lines that begins with its name; no tracked source names
a path of one machine."""
import pathlib
import re
import subprocess
import sys

MOST_README_LINES = 15
SOURCES = (".cc", ".h", ".inc", ".py")
HOME = re.compile(r"(?<![\w.])/(?:home|root|Users)/\w")


def main():
    root = pathlib.Path(sys.argv[1])
    faults = []
    for room in sorted(path for path in (root / "src").iterdir() if path.is_dir() and any(path.glob("*.cc"))):
        readme = room / "README.md"
        lines = readme.read_text().splitlines() if readme.exists() else []
        if not lines:
            faults.append(f"{room} has no README.md")
        elif lines[0] != f"# {room.name}" or len(lines) > MOST_README_LINES:
            faults.append(f"{readme}: begins '# {room.name}' and has at most {MOST_README_LINES} lines, not {len(lines)}")
    tracked = subprocess.run(["git", "-C", str(root), "ls-files"], capture_output=True, text=True, check=False).stdout.split()
    for name in tracked:
        path = root / name
        if path.suffix not in SOURCES or not path.exists():
            continue
        if HOME.search(path.read_text()):
            faults.append(f"{path}: names a path of one machine")
    print("\n".join(faults) or "every room has its README")
    sys.exit(1 if faults else 0)


main()
