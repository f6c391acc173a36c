#!/bin/bash
# The part of slurm.sh that runs in the chroot.
set -euo pipefail
cd /sweep
export SHELL=/bin/bash HOME=/root
runuser -u munge -- munged --foreground 2>/var/log/munged.err &
sleep 1
slurmctld -D 2>/dev/null &
for node in n1 n2 n3; do slurmd -D -N $node 2>/dev/null & done
for try in {1..30}; do
	[ "$(sinfo -h -N -t idle -o %N 2>/dev/null | wc -l)" = 3 ] && break
	sleep 1
done
slurmctld -V

# 5 jobs by 4 allocators by 10 capacities.
jobs=$(for seq in 128 192 256 320 384; do echo '{"job": "llama-7b,layers=4,batch=1,seq='$seq'", "strategy": "R", "steps": 4}'; done | paste -sd,)
capacities=$(for gib in {1..10}; do echo "\"${gib}GiB\""; done | paste -sd,)
echo "{\"synth\": [$jobs], \"allocators\": [\"torch\", \"expandable\", \"stitch\", \"native\"], \"capacities\": [$capacities]}" >s.json
gmbench sweep s.json -d results --slurm >sweep.sh
sed -n 2,4p sweep.sh

id=$(sbatch --parsable --output=/sweep/out.%a sweep.sh)
until [ "$(ls results 2>/dev/null | wc -l)" -ge 40 ]; do sleep 0.2; done
scontrol update NodeName=n3 State=DRAIN Reason=test
echo "n3 drained after $(ls results | wc -l) results"
until killed=$(pgrep -n -x gmbench) && kill -KILL "$killed"; do sleep 0.05; done
echo "a task killed by SIGKILL after $(ls results | wc -l) results"
while [ -n "$(squeue -h -j "$id" -t PD,R,CG)" ]; do sleep 1; done
sinfo -h -N -o '%N %T'
gmbench merge s.json -d results >table.csv || true

echo 'submitted again'
sbatch --wait --parsable --output=/sweep/again.%a sweep.sh >/dev/null
gmbench merge s.json -d results >table.csv
gmbench sweep s.json -d alone
gmbench merge s.json -d alone >alone.csv
cmp table.csv alone.csv
echo "$(ls results/*.json | wc -l) results, merged table of $(wc -l <table.csv) lines: the same as of gmbench sweep alone"
