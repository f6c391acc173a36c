#!/bin/bash
# Prolog of slurm.conf, as root on each node of a job: has gmswap serve run, as a transient unit of systemd. Users of the group gpu may run jobs with it.
# Where that fails jobs run without it: an exit status other than 0 would drain the node. It was not tried on a cluster.
set -u
folder=/run/gmswap
mkdir -p $folder
exec 9>$folder/lock
flock 9
mkdir -p $folder/jobs
touch "$folder/jobs/$SLURM_JOB_ID"
systemctl is-active --quiet gmswap ||
	systemd-run --quiet --collect --unit=gmswap --service-type=notify --property=FileDescriptorStoreMax=1024 --property=Group=gpu --property=LimitNOFILE=4096 --property=Restart=on-failure \
		/usr/local/bin/gmswap serve --idle 5m --socket $folder/gmswap.sock
exit 0
