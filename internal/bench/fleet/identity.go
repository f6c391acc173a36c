package fleet

import (
	"crypto/sha256"
	"fmt"
	"time"

	"gm/formats/summary"
)

// Identity returns what tells the job of rows apart where it is not given: a name, the second at which its first rank began, and a digest of that
// rank's time, process and program. Jobs that begin within a second differ in it.
func Identity(name string, rows []*summary.Summary) string {
	first := rows[0]
	for _, s := range rows {
		if s.StartNS < first.StartNS {
			first = s
		}
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%d\n%q\n%d\n%q\n%q", first.StartNS, first.Host, first.PID, first.Command, first.Source))
	return fmt.Sprintf("%s@%s-%x", name, time.Unix(0, first.StartNS).UTC().Format("20060102T150405Z"), sum[:3])
}
