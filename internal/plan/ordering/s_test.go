package ordering

import (
	"compress/gzip"
	"context"
	"gm/internal/models/simrd"
	"gm/internal/order"
	"gm/internal/order/solve"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestS(t *testing.T) {
	files, _ := filepath.Glob("/work/shared/graphs/dtr/*.gz")
	for _, noplace := range []bool{true, false} {
		for _, file := range files {
			f, _ := os.Open(file)
			z, _ := gzip.NewReader(f)
			g, err := simrd.Read(z, filepath.Base(file))
			if err != nil {
				t.Fatal(err)
			}
			if noplace {
				for i := range g.Tensors {
					g.Tensors[i].Over = nil
				}
			}
			p := Problem(g)
			base := Lasting(g)
			mb := func(b int64) float64 { return float64(b+base) / (1 << 20) }
			s := time.Now()
			l := order.Link(p)
			ctx, c := context.WithTimeout(context.Background(), 4*time.Second)
			defer c()
			r := solve.Order(ctx, l, solve.Options{Rounds: 20, States: 1 << 20})
			if err := l.Check(r.Order); err != nil {
				t.Fatal(err)
			}
			pk, _ := order.Peak(l.Loads(r.Order))
			if pk != r.Peak {
				t.Fatal(pk, r.Peak)
			}
			prog, _ := order.Peak(l.Loads(order.Program(p.Ops())))
			t.Logf("%-22s %5d program %9.1f best %9.1f bound %9.1f gap %.3f%% %s rounds %d %v", g.Name, p.Ops(), mb(prog), mb(r.Peak), mb(r.Bound), 100*float64(r.Peak-r.Bound)/float64(r.Bound+base), r.Method, r.Rounds, time.Since(s))
		}
	}
}
