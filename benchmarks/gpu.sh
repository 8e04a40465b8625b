#!/usr/bin/env bash
# The kernels' tests, their table and QCG retrieval end to end on a CUDA device, in under 8 minutes.
#
#   benchmarks/gpu.sh                  # on the CUDA device, graphs of 100 thousand and 1 million nodes
#   benchmarks/gpu.sh cpu 5000         # the same script on CPU at a small size, to see that it works
#
# Downloads nothing: graphs and unit vectors are synthetic. Peers that are not installed are left out (FAISS, igraph,
# networkx and others), and so is the part that a missing package stops. Settings of the environment:
#   OUT=runs/gpu  ROUNDS=3  BATCH="1 256"  PYTHON=python
#   TESTS_SECONDS=90  KERNELS_SECONDS=270  RETRIEVAL_SECONDS=100    time limit of each part
set -euo pipefail

device=${1:-cuda}
shift || true
sizes=("$@")
((${#sizes[@]})) || sizes=(100000 1000000)
out=${OUT:-runs/gpu}
rounds=${ROUNDS:-3}
read -ra batch <<<"${BATCH:-1 256}"
python=${PYTHON:-python}

cd "$(dirname "$0")/.."
mkdir -p "$out"
export PYTHONPATH=.
if [[ $device == cuda* ]] && ! "$python" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())'; then
  echo "no CUDA device; 'benchmarks/gpu.sh cpu 5000' shows what would run" >&2
  exit 1
fi

failed=()
part() {
  local name=$1 seconds=$2
  shift 2
  echo "== $name (at most $seconds s)"
  timeout "$seconds" "$@" 2>&1 | tee "$out/$name.log" || failed+=("$name")
}

if [[ $device == cuda* ]]; then
  part tests "${TESTS_SECONDS:-90}" "$python" -m pytest -q tests/graph -k cuda
fi
part kernels "${KERNELS_SECONDS:-270}" "$python" benchmarks/kernels.py --quick --rounds "$rounds" \
  --device "$device" --out "$out" --cases expand ppr local paths subgraph knn ivf changes --batch "${batch[@]}" \
  --nodes "${sizes[@]}" --vectors "${sizes[0]}" --table-nodes "${sizes[-1]}"
part qcg_retrieval "${RETRIEVAL_SECONDS:-100}" "$python" benchmarks/qcg_retrieval.py --synthetic "${sizes[0]}" \
  --device "$device" --rounds "$rounds" --out "$out/qcg_retrieval.json"

if ((${#failed[@]})); then
  echo "stopped early or failed: ${failed[*]}; what was measured until then stands in $out" >&2
  exit 1
fi
echo "results in $out: kernels.md, kernels.json, kernels-growth.png, qcg_retrieval.json"
