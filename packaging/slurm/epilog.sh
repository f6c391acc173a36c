#!/bin/bash
# Epilog of slurm.conf, as root on each node of a job: ends gmswap serve after the last job of the node. It does not drain the node where that fails.
# It was not tried on a cluster.
set -u
folder=/run/gmswap
exec 9>$folder/lock
flock 9
rm -f "$folder/jobs/$SLURM_JOB_ID"
if rmdir $folder/jobs 2>/dev/null; then
	systemctl stop gmswap
fi
exit 0
