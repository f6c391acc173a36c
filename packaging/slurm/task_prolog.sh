#!/bin/bash
# TaskProlog of slurm.conf, as the user before each task: what it prints is set for the task. With --gres=shard:N the task takes at most N parts of
# each card. GM_LIMIT is kept by gm in the task itself, which is a bound for programs that mean well. It was not tried on a cluster.
set -eu
shards_of_a_card=8 # as in gres.conf
echo "export GM_SERVER=/run/gmswap/gmswap.sock"
echo "export GM_NAME=slurm-$SLURM_JOB_ID"
if [ -n "${SLURM_SHARDS_ON_NODE:-}" ]; then
	mib=$(nvidia-smi --query-gpu=memory.total --format=csv,noheader,nounits | sort -n | head -1)
	echo "export GM_LIMIT=$((mib * 1048576 * SLURM_SHARDS_ON_NODE / shards_of_a_card))"
fi
