# make help lists the targets.

GO       ?= go
TOOLS    := gmtrace gmplan gmbench gmstitch gmswap
# NVML's functions are resolved at their first call, when its library is loaded, and not when a tool starts.
GOFLAGS  += -ldflags=-extldflags=-Wl,-z,lazy
# Go's own resolver and users: gm asks for the names of no hosts, and so fewer functions of glibc are needed.
GOFLAGS  += -tags=netgo,osusergo
# A folder that holds traces/, snapshots/ and dsa/ for the tests and figures on recordings that are not bundled.
GM_SHARED ?= $(abspath $(wildcard ../shared))
TRACES   ?= $(if $(GM_SHARED),$(GM_SHARED)/traces:$(GM_SHARED)/snapshots,testdata:testdata/snapshots)
FUZZTIME ?= 30s
FUZZ     ?= .*
DECODERS := Fuzz([A-Za-z]*Reader|Import|Decode|Read[A-Za-z]*|Ring|Message|Request)
TRIES    ?= 100
MUTANTS  ?= internal/blocks internal/dsa/skyline internal/dsa/gapfit internal/dsa/exact internal/swap/policy internal/swap/evict \
	internal/bench/replay internal/capture internal/swap/partition
RACE     ?= $(addprefix ./internal/,bench capture/live capture/ring capture/top cli/... cuda/sim cuda/driver cuda/retry dsa/crew dsa/portfolio \
            libgm/page libgm/planner/... swap/answer swap/engine swap/host swap/link swap/objects swap/park swap/server/... swap/share trace/importer)
SEED     ?= 1
TIME     ?= 10m
PROGRAMS ?= 10000
# The tools and libraries bind the oldest versions of glibc's functions, so that they load on older systems. Only what gcc links can.
GLIBC    := internal/glibc/versions.h
PORTABLE := CGO_CFLAGS='-O2 -g -include $(CURDIR)/$(GLIBC)'
DL       := --no-as-needed,-l:libdl.so.2
PTHREAD  := -l:libpthread.so.0
# What starts a program is bound to its oldest version on x86-64 alone (internal/glibc/start.c).
GOARCH   ?= $(shell $(GO) env GOARCH)
START    := $(if $(filter amd64,$(GOARCH)),-Xlinker --wrap=__libc_start_main)
export GM_SHARED TRACES GOFLAGS

SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c

# The networks of figures-chainer.
CHAINER_STEPS := alexnet,batch=32 alexnet,batch=256 vgg-16,batch=64 resnet-50,batch=32 resnet-50,batch=100 resnet-152,batch=100 inception-v4,batch=32 inception-v4,batch=128

.PHONY: FORCE all demo experiment-capture experiment-slurm test race bench lint random random-limits stream-races mutants fuzz fuzz-decoders damage-long stress interop figures aarch64 man clean help
.PHONY: $(addprefix figures-,formats damage import fidelity expandable replay plan capture bilevel scale tail fit lowest large small threads stitch gmlake frontier variations planned why synth estimate look tune report latency footprint memo chainer dsasa dymem workspaces swap programs order remat auto compiled fleet fleet-ranks sweep foresight)

PRELOAD := internal/capture/preload
LIBGM   := internal/libgm
LIBRARY := $(LIBGM)/library
# The libraries that the tools load into programs, and embed.
LOADED  := $(PRELOAD)/libgmtrace.so $(LIBRARY)/libgm.so $(LIBRARY)/libgmpreload.so $(LIBRARY)/libgmgate.so

all: $(LOADED) ## build the tools into bin/
	$(PORTABLE) $(GO) build -ldflags='-extldflags "-Wl,-z,lazy $(START)"' -o bin/ $(addprefix ./tools/,$(filter-out gmplan,$(TOOLS)))
	CGO_ENABLED=0 $(GO) build -ldflags= -o bin/ ./tools/gmplan

# The library that gmtrace run preloads into programs; gmtrace embeds it.
$(PRELOAD)/libgmtrace.so: $(wildcard $(PRELOAD)/*.c $(PRELOAD)/*.h) $(GLIBC)
	$(CC) $(PRELOAD_CFLAGS) -DGM_OWN_DLSYM -shared -o $@ $(filter %.c,$^) -Wl,-z,defs,-z,now,-Bsymbolic,$(DL)

# The allocator as a library. Only the functions of gm.h are exported. go build decides what is out of date.
bin/libgm.so: FORCE
	$(PORTABLE) $(GO) build -buildmode=c-shared -ldflags='-extldflags=-Wl,--version-script=$(CURDIR)/$(LIBGM)/libgm.map,$(DL),$(PTHREAD)' -o $@ ./$(LIBGM)
	@rm -f bin/libgm.h

# The library that is preloaded into programs other than PyTorch to have them use libgm.so.
bin/libgmpreload.so: $(LIBGM)/preload/preload.c $(LIBGM)/gm.h $(GLIBC)
	@mkdir -p bin
	$(CC) $(PRELOAD_CFLAGS) -shared -o $@ $< -Wl,--version-script=$(LIBGM)/preload/preload.map,$(DL),$(PTHREAD)

# The gate in front of the driver for jobs of the memory server; it finds the driver as the library of gmtrace does.
GATE := $(LIBGM)/gate
bin/libgmgate.so: $(wildcard $(GATE)/*.[ch]) $(PRELOAD)/resolve.c $(PRELOAD)/driver.h $(GLIBC)
	@mkdir -p bin
	$(CC) $(PRELOAD_CFLAGS) -DGM_OWN_DLSYM '-DGM_HOOKS="../../libgm/gate/hooks.h"' -shared -o $@ $(GATE)/gate.c $(PRELOAD)/resolve.c \
		-Wl,-z,defs,-z,now,-Bsymbolic,$(DL),$(PTHREAD)

# Launches of an empty kernel, and calls of a store of objects, for experiments/server.
bin/launch: experiments/server/launch.c
	@mkdir -p bin
	$(CC) -std=gnu11 -O2 -Wall -Wextra -Werror -static-libgcc -o $@ $< -ldl

bin/store: experiments/server/store.c $(LIBGM)/gm.h
	@mkdir -p bin
	$(CC) -std=gnu11 -O2 -Wall -Wextra -Werror -static-libgcc -o $@ $< -ldl

bin/latency: $(LIBGM)/latency/latency.c $(LIBGM)/gm.h
	@mkdir -p bin
	$(CC) -std=gnu11 -O2 -Wall -Wextra -Werror -static-libgcc -o $@ $< -ldl -pthread

bin/footprint: $(LIBGM)/footprint/footprint.c $(LIBGM)/gm.h
	@mkdir -p bin
	$(CC) -std=gnu11 -O2 -Wall -Wextra -Werror -o $@ $< -ldl

# gmstitch and gmswap embed the libraries that they load into programs. An unchanged copy is kept, so that they are not linked again.
$(LIBRARY)/%.so: bin/%.so FORCE
	@cmp -s $< $@ || cp $< $@

FORCE:

PRELOAD_CFLAGS := -std=gnu11 -O2 -g -Wall -Wextra -Werror -fPIC -fvisibility=hidden -include $(GLIBC)

demo: all ## bundled real traces through gmtrace, gmplan and gmbench: tables, and charts in out/
	@mkdir -p out
	@echo 'GPT-2, a snapshot through the whole pipe: gmtrace import | gmplan | gmbench'; echo
	@bin/gmtrace import testdata/snapshots/gpt2.pickle.gz | bin/gmplan | bin/gmbench
	@echo 'OPT-13B, LoRA, recomputation, sequences of 256 to 1024 tokens: gmbench TRACE'; echo
	@bin/gmbench --png out/demo.png --svg out/demo.svg testdata/opt13b-LRV.parquet
	@bin/gmplan testdata/opt13b-LRV.parquet | bin/gmplan show --png out/layout.png > out/layout.txt
	@echo 'charts: out/demo.png, out/demo.svg, out/layout.png'

experiment-capture: all ## capture a training run (where there is no GPU: the bundled one), solve its layout, compare allocators
	@experiments/capture/run.sh bin out

experiment-slurm: all ## a sweep of 200 tasks under slurmctld and three slurmd in a chroot (needs root and debootstrap), a node drained and a task killed
	@experiments/fleet/slurm.sh bin/gmbench

test: $(LOADED) ## all tests
	$(GO) vet ./...
	$(GO) test -timeout 25m ./...

race: $(LOADED) ## tests of the packages that share memory between goroutines, under the race detector (RACE=./... for all)
	$(GO) test -race -short $(RACE)

stress: $(LOADED) ## damage, kill and stop gmtrace run at random, for TIME
	GM_STRESS=$(TIME) $(GO) test -v -count 1 -timeout 0 -run TestStress ./internal/capture

bench: $(LOADED) ## benchmarks of the formats, the importer, the allocators and the solvers
	$(GO) test -run '^$$' -bench . -benchtime 1x ./...

lint: ## gofmt, go vet, staticcheck
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo "run gofmt -w on these"; exit 1; }
	$(GO) vet ./...
	$(GO) tool -modfile=internal/devtools/go.mod staticcheck ./...

random: ## random programs on libgm.so with driver calls that fail, for TIME with each allocator, from seed SEED; then each such call at each position
	GM_RANDOM_TIME=$(TIME) GM_RANDOM_SEED=$(SEED) $(GO) test -count 1 -timeout 0 -v -parallel 8 -run 'TestRandom$$|TestRandomSwap' ./internal/libgm | grep -vE '^=== '
	GM_EVERY=1 $(GO) test -count 1 -timeout 0 -v -run 'TestFaults$$' ./internal/libgm | grep -vE '^=== '

random-limits: ## random training programs under limits on the fake driver (PROGRAMS, from seed SEED): none takes more, results are the same
	GM_LIMITED=$(PROGRAMS) GM_SEED=$(SEED) $(GO) test -count 1 -timeout 0 -v -run 'TestLimited$$' ./internal/torch/gmswap | grep -vE '^ *(=== |--- PASS: TestLimited/|limited_test.go.*(recomputed|gmswap:)|gmswap: )'

stream-races: ## gmswap's tests on a fake driver that looks for uses of memory of which neither waits for the other (SEED: how late events are seen)
	races=$$(mktemp -d) && GM_FAKE_RACES=$$races GM_FAKE_RACES_SEED=$(SEED) $(GO) test -count 1 -timeout 0 ./internal/torch/gmswap; ran=$$?; rm -r $$races; exit $$ran

mutants: ## changes of choices in allocators, solvers and policies, and how many of them tests notice (MUTANTS: packages, TRIES of each)
	$(GO) run ./experiments/mutants -n $(TRIES) $(MUTANTS)

fuzz-decoders: ## the fuzz targets of what reads files and messages
	@$(MAKE) --no-print-directory fuzz FUZZ='$(DECODERS)'

fuzz: ## every fuzz target, or those whose names match FUZZ, FUZZTIME each
	@for target in $$(grep -rlE '^func Fuzz' --include '*_test.go' . | xargs grep -HoE '^func Fuzz[A-Za-z0-9]+' | sed 's/:func /:/' | grep -E ':($(FUZZ))$$'); do \
		echo "$$target"; \
		$(GO) test -run '^$$' -fuzz "^$${target##*:}$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 20x "$$(dirname $${target%%:*})" || exit 1; \
	done

interop: all ## DuckDB reads the formats and agrees, and polars answers alike (needs node and npm)
	cd formats/interop && npm install --silent --no-audit --no-fund
	@mkdir -p out
	$(GO) run ./formats/interop -sample out
	cp testdata/opt13b-LRV.parquet out/trace.parquet
	bin/gmplan layout out/trace.parquet -o out/plan.parquet
	$(GO) run ./formats/interop $(INTEROP) > out/expected.json
	node formats/interop/check.mjs $(INTEROP) out/expected.json formats/README.md
	$(GO) run ./formats/interop $(INTEROP:=.copy) | cmp - out/expected.json
	$(GO) test ./tools -count=1 -run Queries
	bin/gmtrace export --format tensors testdata/snapshots/gpt2.pickle.gz -o out/tensors.parquet
	bin/gmtrace export --format tensors testdata/snapshots/resnet50x.pickle.gz -o out/other.parquet
	node formats/interop/cookbook.mjs duckdb out/tensors.parquet out/other.parquet docs/cookbook.md > out/cookbook.txt
	test $$(wc -l < out/cookbook.txt) -eq 10
	node formats/interop/cookbook.mjs polars out/tensors.parquet out/other.parquet docs/cookbook.md | cmp - out/cookbook.txt
	if python3 -c 'import pandas, pyarrow' 2>/dev/null; then \
		python3 formats/interop/cookbook.py out/tensors.parquet out/other.parquet docs/cookbook.md | cmp - out/cookbook.txt; \
	else echo 'pandas is not here: its answers are not compared'; fi

INTEROP := $(patsubst %,out/%.parquet,trace plan graph schedule)

figures: all bin/latency bin/footprint figures-formats figures-damage figures-chainer figures-dsasa ## every figure of docs/figures.md beside its target (TRACES: folders of snapshots)
	$(GO) run ./experiments/figures import fidelity expandable replay plan capture bilevel scale tail fit lowest large small threads stitch gmlake why synth estimate look tune report latency footprint memo dymem workspaces swap programs order remat auto compiled fleet sweep

figures-import: ## time and memory to import a snapshot
figures-fidelity: ## PyTorch's allocator replayed against recordings of it
figures-expandable: ## expandable_segments against runs with it
figures-replay: ## requests a second
figures-plan: ## layouts of traces, and of one iteration each, against their bound
figures-stitch: ## utilisation and driver time of gm's allocator, and of others
figures-gmlake: ## Figures 4, 6, 10, 11, 13, 14 and Table 1 of the GMLake paper, simulated
figures-frontier: ## utilisation and driver time of gm's allocator for each of its settings; a chart in out/
figures-variations: ## utilisation on variations of the recordings, with sizes that nothing was chosen by
figures-planned: ## jobs of fixed shapes that follow a plan
figures-why: ## the parts of what each allocator loses, and their sums, on all traces
figures-fleet: ## jobs of up to 512 ranks, time and memory as charts in out/; 10,000 jobs in a dataset, and the queries of docs/fleet.md
figures-fleet-ranks: ## the jobs of many ranks alone
figures-sweep: ## a sweep with two tasks at a time on two cores, against one at a time
figures-synth: ## synthetic traces against recordings, and of models too large for them
figures-estimate: ## estimates of jobs against recorded and published peaks, and on 1,024 GPUs
figures-look: ## time and memory of gmtrace show, diff and export on the longest trace
figures-tune: ## time to search PyTorch's settings for each trace
figures-report: ## time to make a page of each trace, and its size
figures-latency: bin/latency ## latency of libgm.so's calls, on a driver that does nothing
figures-footprint: bin/footprint ## the size of libgm.so, and the memory of a process that uses it
figures-capture: ## what gmtrace run costs, and what its accounts leave unexplained
figures-import figures-fidelity figures-expandable figures-replay figures-plan figures-capture figures-stitch figures-gmlake figures-frontier figures-variations figures-planned figures-why figures-synth figures-estimate figures-look figures-tune figures-report figures-latency figures-footprint figures-fleet figures-fleet-ranks figures-sweep: figures-%: all
	$(GO) run ./experiments/figures $*

figures-bilevel: ## two-level layouts of an iteration of 7B to 65B, against flat ones
figures-scale: ## time and memory to lay out 10,000 to 1,000,000 buffers; a chart in out/
figures-tail: ## 500 planted problems within their capacity, GM_SEEDS=1 seeds each, one core
figures-tails: ## layouts of buffers where a few live a thousand times as long as most
figures-fit: ## minimalloc's instances (GM_SHARED/dsa) within their capacity, against minimalloc's times
figures-lowest: ## the lowest layouts of minimalloc's instances, GM_SECONDS=60 each
figures-large: ## time to the bound on large instances of models and compilers
figures-small: ## the exact solvers against brute force, glpsol and cbc
figures-threads: ## two workers against one, and whether their layouts are equal
figures-memo: all ## MEMO's tables 3 to 5 and figure 11, simulated
figures-dymem: ## Dymem's figures 1, 8 and 12 to 15 and its table 2, simulated
figures-workspaces: ## Dymem's figure 12(b): workspaces of convolutions by cuDNN's algorithms on an H200, simulated
figures-swap: ## gmswap on H200s, from the runs in experiments/swap/results
figures-programs: ## gmstitch beside PyTorch's allocators on programs of popular libraries, and gmswap under limits on small ones, from the runs in experiments/programs/results
figures-order: ## orders of operators: DTR's logs (GM_SHARED/graphs/dtr), randomly wired networks and exported steps, with proven bounds
figures-compiled: ## orders of what torch.compile makes on an H200, and what it saves, against its own, from the runs in experiments/order/results
figures-remat: ## steps that recompute and copy nothing: DTR's logs (GM_SHARED/graphs/dtr), a recorded step and networks, with lower bounds
figures-auto: ## policy auto of gmswap beside all others on recorded steps of nine models
figures-bilevel figures-scale figures-tail figures-tails figures-fit figures-lowest figures-large figures-small figures-threads figures-memo figures-dymem figures-workspaces figures-swap figures-programs figures-order figures-remat figures-auto figures-compiled: figures-%:
	$(GO) run ./experiments/figures $*

figures-chainer: all ## training steps of networks in Chainer's plan (arXiv 1804.10001), beside PyTorch's allocators
	for step in $(CHAINER_STEPS); do echo $$step; bin/gmswap net $$step | bin/gmplan step --solver skyline-W | bin/gmbench --alloc torch,expandable,planned,floor || exit 1; done

figures-dsasa: all ## iterations that repeat and instances (GM_SHARED/dsa) laid out by annealing their order, as DSA-SA does
	@mkdir -p out
	for trace in testdata/*.parquet; do echo $$trace; bin/gmplan --iteration auto --periodic --solver anneal --time 8s $$trace | bin/gmplan check - || exit 1; done
	for instance in $(wildcard $(GM_SHARED)/dsa/*); do echo $$instance; bin/gmplan solve --solver anneal --time 20s $$instance > out/dsasa.csv || exit 1; done

figures-formats: ## writing and reading 5 million events on one core
	@GOMAXPROCS=1 $(GO) test -run '^$$' -bench 'Trace' -benchtime 3x ./formats/trace | awk -f experiments/formats.awk

figures-foresight: ## how near what a step will need is foreseen before it is there, where several dimensions of the inputs vary, simulated
	@$(GO) test -count 1 -v -run 'TestForesight$$' ./internal/torch/gmswap | grep -E 'within|^(ok|FAIL)'

figures-damage: ## 20,000 damaged files
	@$(GO) test -count 1 -v -run TestDamaged ./formats | grep -E 'refused|^(ok|FAIL)'
	@echo "target: 20000 files, no panic, at most 32 MiB allocated for each, or the test fails: met"

damage-long: ## damage files of each kind and run the commands on them, for TIME each, from seed SEED
	$(GO) test -count 1 -timeout 0 -v -run TestDamaged ./internal/damage -args -seed $(SEED) -time $(TIME)


aarch64: all ## everything for aarch64, in out/aarch64/bin/ (needs gcc-aarch64-linux-gnu), and tests of it under qemu-user-static
	@packaging/aarch64.sh

man: all ## a manual page for each tool, in out/man/
	@mkdir -p out/man
	@for tool in $(TOOLS); do bin/$$tool man > out/man/$$tool.1 || exit 1; done
	@echo 'manual pages: out/man/'

include packaging/packaging.mk

clean: ## remove what was built
	rm -rf bin out

help: ## this list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 20
