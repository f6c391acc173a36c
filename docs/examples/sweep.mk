# Runs a sweep with as many tasks at a time as make -j allows, and merges it into table.csv:
#   make -j 8 -f sweep.mk SPEC=sweep.json
SPEC = sweep.json
RESULTS = results
TASKS := $(shell gmbench sweep $(SPEC) -d $(RESULTS) --list)

# Each task has a core.
export GOMAXPROCS = 1

table.csv: $(TASKS:%=task-%)
	gmbench merge $(SPEC) -d $(RESULTS) >$@

task-%:
	gmbench sweep $(SPEC) -d $(RESULTS) --task $*
