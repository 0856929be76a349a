#!/usr/bin/env bash
# What a machine with CUDA 13 GPUs needs to train with verl, in the order that installs: install-gpu.sh [--print]
#
# flash-attn 2.8.3 is published as source only and asks for torch while it is being built, so torch comes first and
# the build sees it. Building takes nvcc and long (MAX_JOBS bounds its memory). `make check-gpu` resolves all of it
# with this package on any machine, without fetching.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
run() { echo "+ $*"; if [ "${print:-}" != yes ]; then "$@"; fi; }
case "${1:-}" in
  "") ;;
  --print) print=yes ;;
  *) echo "usage: train_recipes/install-gpu.sh [--print]" >&2; exit 1 ;;
esac
run python -m pip install torch==2.11.0 setuptools wheel packaging ninja psutil einops
run python -m pip install --no-build-isolation flash-attn==2.8.3
run python -m pip install . -r train_recipes/requirements-gpu.txt
