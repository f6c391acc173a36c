package main

import (
	"fmt"
	"io"
	"strings"
)

// arrayMost is how many indices an array has at most. Slurm refuses those from MaxArraySize on, which is 1001 unless it is configured.
const arrayMost = 1000

// script writes a script for sbatch that runs n tasks as an array. With more tasks than an array has indices, each index runs several in turn.
func (cmd *sweepCmd) script(w io.Writer, n int) error {
	width := min(n, arrayMost)
	_, err := fmt.Fprintf(w, `#!/bin/sh
#SBATCH --job-name=gm-sweep
#SBATCH --array=0-%d
#SBATCH --ntasks=1
#SBATCH --requeue
status=0
for task in $(seq "$SLURM_ARRAY_TASK_ID" %d %d); do
	gmbench sweep %s -d %s --task "$task" || status=1
done
exit $status
`, width-1, width, n-1, shellQuoted(cmd.Spec), shellQuoted(cmd.Dir))
	return err
}

// shellQuoted returns a text as one word of a shell.
func shellQuoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
