"""No room includes from a room that it may not use (the ladder of ARCHITECTURE.md, written in CMakeLists.txt)."""
import pathlib
import re
import sys


def allowed_rooms(cmake_text):
    """room -> the set of rooms it may include, following USES transitively; itself included."""
    uses = {}
    for match in re.finditer(r"batchwright_(room|program|engine)\(([^)]*)\)", cmake_text):
        words = match.group(2).split()
        room = {"room": words[0], "program": words[1], "engine": "engine"}[match.group(1)]
        uses[room] = set()
        if "USES" in words:
            for word in words[words.index("USES") + 1:]:
                if word == "LIBRARIES":
                    break
                uses[room].add(word)
    closed = {}

    def close(room):
        if room not in closed:
            closed[room] = {room}
            for used in uses.get(room, ()):
                closed[room] |= close(used)
        return closed[room]

    return {room: close(room) for room in uses}


def main():
    root = pathlib.Path(sys.argv[1])
    text = (root / "CMakeLists.txt").read_text() + (root / "cmake/engine.cmake").read_text()
    rooms = allowed_rooms(text)
    faults, seen = [], 0
    for source in sorted((root / "src").rglob("*")):
        if source.suffix not in (".h", ".cc"):
            continue
        room = source.relative_to(root / "src").parts[0]
        if room not in rooms:
            faults.append(f"{source}: room '{room}' is not declared in CMakeLists.txt")
            continue
        for number, line in enumerate(source.read_text().splitlines(), 1):
            include = re.match(r'\s*#\s*include\s+"([a-z_]+)/', line)
            if include:
                seen += 1
                if include.group(1) not in rooms[room]:
                    faults.append(f"{source}:{number}: room '{room}' may not include from '{include.group(1)}'")
    print("\n".join(faults) or f"{seen} includes keep to the ladder")
    assert seen > 0, "no include found: the test itself is broken"
    sys.exit(1 if faults else 0)


main()
