#!/bin/bash
# Records the steps of third-party models that are in testdata/steps, of an H100. Usage: graphs.sh BIN OUT, on a machine with a GPU; BIN holds gmswap.
# Times of recomputation are those of operators seen one by one: up to ten times what they take when the device does not wait for launches.
set -u
bin=$(realpath "$1") out=$(realpath "$2") train=$(dirname "$0")/../programs/train.py
record() {
	timeout 100 "$bin/gmswap" record -o "$out/$1.parquet" -- python3 "$train" --steps 5 "${@:2}" > "$out/$1.log" 2>&1
	echo "$1: status $?, $(stat -c %s "$out/$1.parquet" 2>/dev/null || tail -2 "$out/$1.log") bytes"
}
record vit vit & record llama layers7b & wait
record convnext vit model=convnext_large batch=64 & record gpt2xl gpt2xl & wait
record efficientnet vit model=tf_efficientnetv2_m batch=96 side=288 & record bert bert & wait
record swin vit model=swinv2_base_window8_256 batch=64 side=256 & record moe moe & wait
record resnet50 vit model=resnet50 batch=256 & record maskrcnn maskrcnn & wait
