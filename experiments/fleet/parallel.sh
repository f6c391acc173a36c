#!/bin/bash
# Records jobs whose layers, tokens, stages and experts are split over the GPUs of a host, runs them under gmstitch and gmswap, and compares their losses.
# Usage: parallel.sh BIN OUT [GPUS [KIND...]]
# OUT gets a trace of each rank of each kind, KIND-rRANK.parquet, and parallel.txt with a line for each rank of each run. Kinds: tp, cp, pp and dp of a
# Llama; gqa, tp of one whose heads share keys; moe, a Mixtral whose experts are split, moe-scores, whose router is free, and mla, a DeepSeek-V3.
# RUNS="plain gmtrace" makes only these of the runs of each: plain, gmtrace, gmstitch, gmswap (which needs plain) and long. SHARE=75 is the limit of gmswap in
# percent of what plain had allocated.
set -u
bin=$(realpath "$1") out=$(realpath "$2") gpus=${3:-2} here=$(dirname "$(realpath "$0")")
kinds=("${@:4}")
[ ${#kinds[@]} = 0 ] && kinds=(tp cp pp dp gqa moe moe-scores mla)
runs=" ${RUNS:-plain gmtrace gmstitch gmswap long} "
export NCCL_NVLS_ENABLE=0 CUBLAS_WORKSPACE_CONFIG=:4096:8
run() { # NAME TOOL... @ ARGUMENTS...
	local name=$1 tool=() log
	shift
	while [ "$1" != @ ]; do tool+=("$1"); shift; done
	shift
	log=$(timeout 100 "${tool[@]}" torchrun --nproc-per-node "$gpus" --master-port 29511 "$here/parallel.py" "$@" 2>&1)
	echo "== $name: status $?" | tee -a "$out/parallel.txt"
	grep -h -o -E "RESULT .*|gmswap: .*|gm: .*" <<<"$log" | tee -a "$out/parallel.txt"
	grep -q RESULT <<<"$log" || why "$log" | tee -a "$out/parallel.txt"
}
why() { # LOG
	if grep -q Traceback <<<"$1"; then sed -n '/Traceback/,$p' <<<"$1" | head -60; else tail -15 <<<"$1"; fi
}
recorded() { # KIND ARGUMENTS...
	local traces rank file
	traces=$(mktemp -d)
	run "$1 under gmtrace" "$bin/gmtrace" run -o "$traces/" -- @ "${@:2}"
	for ((rank = 0; rank < gpus; rank++)); do
		for file in "$traces"/*/rank=$rank/*/trace.parquet; do cp "$file" "$out/$1-r$rank.parquet"; done
	done
	rm -r "$traces"
}
for kind in "${kinds[@]}"; do
	case $kind in
	pp) flags=(pp --batch 1 --micro 4) ;;
	gqa) flags=(tp --config gqa) ;;
	moe) flags=(ep --config mixtral) ;;
	moe-scores) flags=(ep --config mixtral --scores) ;;
	mla) flags=(ep --config deepseek) ;;
	*) flags=("$kind") ;;
	esac
	[[ $runs = *" plain "* ]] && run "$kind" @ "${flags[@]}"
	[[ $runs = *" gmtrace "* ]] && recorded "$kind" "${flags[@]}"
	[[ $runs = *" gmstitch "* ]] && run "$kind under gmstitch" "$bin/gmstitch" run -- @ "${flags[@]}"
	if [[ $runs = *" gmswap "* ]]; then
		limit=$(grep -A3 "^== $kind: " "$out/parallel.txt" | grep -o '"allocated": [0-9]*' | sort -k2 -n | tail -1 | cut -d' ' -f2)
		run "$kind under gmswap" "$bin/gmswap" run -m $((limit * ${SHARE:-75} / 100)) -- @ "${flags[@]}" --steps 10
	fi
	[[ $runs = *" long "* ]] && run "$kind, 10 steps" @ "${flags[@]}" --steps 10
done
exit 0
