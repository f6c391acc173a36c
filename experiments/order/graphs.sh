#!/bin/sh
# Writes the graphs of testdata/graphs and the table of their numbers, with the python3 and the gmswap in PATH. Usage: graphs.sh FOLDER TABLE
set -eu
folder=$1 table=$2
export=$(dirname "$0")/export.py
one() { # NAME and the arguments of export.py
	name=$1
	shift
	gmswap record -o "$folder/$name.parquet" -- python3 "$export" --row "$table" "$@"
}
rm -f "$table"
for model in alexnet vgg mnasnet mobilenet efficientnet vit bert roberta; do
	for batch in 1 32; do
		one $model-$batch-adam $model --batch $batch
		one $model-$batch-adam-keep $model --batch $batch --keep
		one $model-$batch-sgd $model --batch $batch --optimizer sgd
	done
	one $model-32-adam-over $model --batch 32 --over
done
for batch in 1 32; do
	one vit-math-$batch-adam vit --batch $batch --attention math
done
one gpt2-xl-1-adam gpt2-xl
