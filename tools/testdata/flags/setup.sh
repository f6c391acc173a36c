# Makes the files that the commands of flags.txt work on.
gmtrace import "$ROOT/testdata/snapshots/gpt2.pickle.gz" -o gpt2
gmtrace import "$ROOT/testdata/snapshots/streams.pickle.gz" -o streams
gmplan gpt2 -o gpt2.plan
gmtrace export --format csv -o streams.csv streams
gmswap net gpt-7b,layers=2,seq=4Ki -o small
gmswap net gpt-7b,layers=4,seq=32Ki -o graph
gmswap net resnet-32,batch=100 -o resnet
gmswap plan graph -m 4GiB -o schedule
gmswap plan resnet -m 110MiB --policy dymem -o resnet.schedule
cp "$ROOT/testdata/graphs/vit-1-adam.parquet" step
cp "$ROOT/testdata/graphs/alexnet-1-sgd.parquet" sgd
cp "$ROOT/testdata/settings/gc.parquet" gc

for c in 3,227,227,96,11,11,4,0,0,1 96,27,27,256,5,5,1,2,2,2 256,13,13,384,3,3,1,1,1,1 384,13,13,384,3,3,1,1,1,2 384,13,13,256,3,3,1,1,1,2; do
	for pass in forward backward_data backward_filter; do
		printf "1,$c,%s,$pass,%s,%d,%d\n" fp32 bare 0 4 fp32 fast 2000000 2 tf32 bare 0 3 tf32 fast 2000000 1
	done
done | sed '1i # some GPU\
batch,channels,height,width,filters,kernel_height,kernel_width,stride,pad_height,pad_width,groups,dtype,pass,algorithm,workspace_bytes,ms' >algorithms.csv
gmswap net alexnet,batch=1 --algorithms algorithms.csv -o options

awk 'BEGIN {
	srand(1)
	print "id,lower,upper,size"
	for (i = 0; i < 400; i++) {
		begin = int(rand() * 1000)
		print i "," begin "," begin + 1 + int(rand() * 200) "," 1 + int(rand() * 1000)
	}
}' >hard.csv
printf 'id,lower,upper,size\na,0,10,400\nb,0,4,100\nc,5,10,100\n' >easy.csv

for call in cuMemAlloc cuMemFree cuMemAddressReserve cuMemAddressFree cuMemCreate cuMemRelease cuMemMap cuMemSetAccess cuMemUnmap \
	cuEventRecord cuEventQuery cuStreamWaitEvent; do
	printf ',"%s": [{"bytes": 0, "ns": 0}]' $call
done | sed '1s/^,/{"costs": {/; $s/$/}}/' >free.json
cat >slow.json <<'end'
{"schema": "gm link 1", "device": "slow", "gpus": [{"ordinal": 0, "numa_node": -1, "memory_slowdown": 1, "alone": [
 {"bytes": 1048576, "out_bytes_per_s": 1000000000, "in_bytes_per_s": 1000000000, "both_out_bytes_per_s": 1000000000, "both_in_bytes_per_s": 1000000000}]}]}
end

sed 's/1000000000/1100000/g; s/slow/slower/' slow.json >snail.json
cat >offload <<'end'
export PYTHONPATH=$OFFLOAD/stub:$OFFLOAD GM_FAKE_DEVICES=2 HOW=auto FACTS=$PWD/facts
TRAIN="env -u GM_LIMIT python3 $OFFLOAD/programs.py plain" # it needs less than the smallest piece of memory
end

# Programs: one that takes N blocks of 4 MiB by cudaMalloc, one that trains, and one that keeps tensors.
sed -n '/^-- fill.c --$/,$p' "$ROOT/tools/testdata/stitch-preload.txtar" | sed 1d >fill.c
gcc -I"$FAKE/src" -o fill fill.c -L"$FAKE" -lcudart -lcuda -pthread
cat >loop.py <<'end'
def step():
    pass
end
cat >train.py <<'end'
import sys
import time

import loop
import torch

optimizer = torch.optim.Optimizer()
for i in range(5):
    tensors = [torch.empty_bytes(1 << 20) for _ in range(10)]
    optimizer.step()
    if i % 2:
        loop.step()
if "wait" in sys.argv:
    time.sleep(1)
end
cat >keep.py <<'end'
import os
import sys

import torch

held = []
try:
    held = [torch.empty_bytes(1 << 20) for _ in range(64)]
except torch.OutOfMemoryError:
    print("out of memory")
if len(sys.argv) > 1:
    sys.stdout.flush()
    os.system(sys.argv[1])
print(torch.cuda.memory_reserved() >> 20, "MiB")
end
# A memory server, with what $SERVE holds, until kill $!.
cat >serve <<'end'
export GM_SERVER=$PWD/socket
gmswap serve $SERVE >serve.log 2>&1 &
until gmswap ctl list >/dev/null 2>&1; do sleep 0.02; done
end
