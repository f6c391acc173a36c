#!/usr/bin/env bash
# Captures six steps of train.py, solves a layout for them and compares allocators: capture -> gmplan -> gmbench.
# Where there is no GPU or no PyTorch, a capture of an H200 stands in.
# Usage: run.sh BIN OUT
set -euo pipefail
bin=$1 out=$2 here=experiments/capture
capture=testdata/captures/opt1.3b.parquet
mkdir -p "$out"
if python3 -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then
	capture=$out/capture.parquet
	"$bin/gmtrace" run -o "$capture" -- python3 "$here/train.py" --lora --recompute --steps 6
else
	echo "no GPU or no PyTorch: a capture of an H200 stands in"
fi
"$bin/gmtrace" show "$capture" > "$out/capture.txt"
sed -n '/^device memory /,$p' "$out/capture.txt"
"$bin/gmplan" "$capture" | "$bin/gmbench"
"$bin/gmbench" verify "$capture"
