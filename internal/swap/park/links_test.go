package park

import (
	"math/rand/v2"
	"testing"

	"gm/internal/cuda/driver"
)

// TestLinks has copies go by two links, evenly, but not those of memory that was mapped before the other device could reach it.
func TestLinks(t *testing.T) {
	if !alone(t, "GM_FAKE_DEVICES=2") {
		return
	}
	d := open(t)
	l, err := driver.Load()
	if err != nil {
		t.Fatal(err)
	}
	other, err := l.Open(1)
	if err != nil {
		t.Fatal(err)
	}
	p := &program{t: t, dev: d, random: rand.New(rand.NewPCG(8, 1))}
	large := &used{size: 2 * stride}
	large.handle, err = d.Create(large.size)
	p.check(err)
	p.pieces = []*used{large}
	p.mapAgain(large)
	p.write(large)
	p.check(d.Peers([]int{0, 1}))
	d.Help([]*driver.Device{other})
	for i, want := range []int64{0, large.size / 2, large.size / 2, large.size / 2} {
		if i%2 == 0 {
			_, err = d.Sleep(most, most)
		} else {
			err = d.Wake(0)
		}
		p.check(err)
		if n := d.links[1].queued; n != want {
			t.Errorf("move %d: %d bytes went by the other link, want %d", i, n, want)
		}
	}
	p.verify()
	d.links[1].failed = true // as after an error
	_, err = d.Sleep(most, most)
	p.check(err)
	p.check(d.Wake(0))
	p.verify()
	if len(d.links) != 1 {
		t.Error("a link that has failed is used again")
	}
}
