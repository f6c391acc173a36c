#!/bin/bash
# Records jobs whose layers, tokens and stages are split over the GPUs of a host, runs them under gmstitch and gmswap, and compares their losses.
# Usage: parallel.sh BIN OUT [GPUS]
# OUT gets a folder of traces for each kind, and parallel.txt with a line for each rank of each run.
set -u
bin=$(realpath "$1") out=$(realpath "$2") gpus=${3:-2} here=$(dirname "$(realpath "$0")")
export NCCL_NVLS_ENABLE=0 CUBLAS_WORKSPACE_CONFIG=:4096:8
run() { # NAME TOOL... @ ARGUMENTS...
	local name=$1 tool=() log
	shift
	while [ "$1" != @ ]; do tool+=("$1"); shift; done
	shift
	log=$(timeout 100 "${tool[@]}" torchrun --nproc-per-node "$gpus" --master-port 29511 "$here/parallel.py" "$@" 2>&1)
	echo "== $name: status $?" | tee -a "$out/parallel.txt"
	grep -h -o -E "RESULT .*|gmswap: .*|gm: .*" <<<"$log" | tee -a "$out/parallel.txt"
	grep -q RESULT <<<"$log" || tail -15 <<<"$log"
}
for kind in tp cp pp dp; do
	flags=("$kind")
	[ $kind = pp ] && flags+=(--batch 1 --micro 4)
	run "$kind" @ "${flags[@]}"
	run "$kind under gmtrace" "$bin/gmtrace" run -o "$out/$kind/" -- @ "${flags[@]}"
	run "$kind under gmstitch" "$bin/gmstitch" run -- @ "${flags[@]}"
	limit=$(grep -A3 "^== $kind: " "$out/parallel.txt" | grep -o '"allocated": [0-9]*' | sort -k2 -n | tail -1 | cut -d' ' -f2)
	run "$kind under gmswap" "$bin/gmswap" run -m $((limit * 75 / 100)) -- @ "${flags[@]}" --steps 10
	run "$kind, 10 steps" @ "${flags[@]}" --steps 10
done
