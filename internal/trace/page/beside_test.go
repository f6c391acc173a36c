package page

import (
	"fmt"
	"strings"
	"testing"

	"gm/internal/trace/importer/tracetest"
	"gm/internal/trace/page/chromium"
)

// fourRanks reads the traces of a job of which rank 2 has the double batch.
func fourRanks(t *testing.T) *Recording {
	t.Helper()
	var all []*Recording
	for rank := range 4 {
		name := fmt.Sprintf("ranks/host=node0/rank=%d/pid=%d/trace.parquet", rank, rank+1)
		all = append(all, read(t, tracetest.Read(t, testdata+name), name))
	}
	TellApart(all...)
	return Join(all)
}

// TestBeside: ranks side by side show the same moment, by their own traces, and the one that is clicked is shown in the large pictures.
func TestBeside(t *testing.T) {
	joined := fourRanks(t)
	tab := open(t, desk, joined)
	tab.Wait("viewers[0].beside && viewers[0].beside.panes.every(p => p.plot.positions)")
	if title := textOf(tab, ".pane:nth-child(3) .title"); title != "rank=2/pid=3" {
		t.Errorf("the third is named %q", title)
	}
	at := func(pane int) (moment int32) {
		tab.Eval(fmt.Sprintf("viewers[0].beside.panes[%d].moment", pane), &moment)
		return moment
	}
	check := func() {
		t.Helper()
		for i := range 4 {
			p, want := joined.parts[i], fmt.Sprintf("rank=%d/pid=%d", i, i+1)
			for _, h := range p.holders(at(i), 1, func(k *kind) string { return p.labels[k.label].Name() }) {
				var cell string
				tab.Eval(fmt.Sprintf(`(() => { const [head, ...rows] = document.querySelectorAll(".panes tr"), row = rows.find(r => r.cells[0].innerText === %q);
					return head.cells[%d].title + " " + row?.cells[%[2]d].innerText; })()`, h.Name, i+1), &cell)
				if cell != want+" "+h.Bytes {
					t.Errorf("%s of rank %d at position %d: %q, want %s", h.Name, i, at(i), cell, h.Bytes)
				}
			}
		}
	}
	tab.Eval("document.querySelector('.panes details').open = true", nil)
	check()
	if at(0) == 0 || at(0) != at(1) || at(0) != at(3) {
		t.Errorf("ranks that do the same are at positions %d, %d and %d", at(0), at(1), at(3))
	}
	tab.Mouse(".pane:nth-child(3) canvas", 60, 50, "move", "down", "up")
	tab.Wait("viewers[0].number === 2")
	tab.Settle()
	if facts := textOf(tab, ".pane[aria-pressed=true] .facts"); !strings.HasPrefix(facts, "4.31 GiB live, peak 5.84 GiB") {
		t.Errorf("of the one that is shown: %q", facts)
	}
	var menu string
	if tab.Eval("document.querySelector('[data-choose=part]').value", &menu); menu != "2" {
		t.Errorf("the menu has part %s", menu)
	}
	check()
	tab.Eval("viewers[0].choose('axis', 'seconds'), viewers[0].act('peak')", nil)
	tab.Settle()
	check()
	var apart float64 // nanoseconds between the moments of two ranks, whose iterations take the same time
	tab.Eval("(([a, , b]) => Math.abs(a.tensors.ns(a.moment) - b.tensors.ns(b.moment)))(viewers[0].beside.panes)", &apart)
	if apart > 1e5 {
		t.Errorf("moments are %v ns apart", apart)
	}
	tab.Eval("viewers[0].choose('search', 'parameters')", nil)
	var grey bool
	if tab.Eval("viewers[0].beside.panes.every(p => p.colors.matches && p.colors.matches.some(m => m) && !p.colors.matches.every(m => m))", &grey); !grey {
		t.Error("a search does not go through all ranks")
	}
}

// TestBesidePhone: two panes lie side by side on a phone, and nothing is wider than the page.
func TestBesidePhone(t *testing.T) {
	tab := open(t, chromium.Screen{Width: 390, Height: 800, Scale: 2, Touch: true}, fourRanks(t))
	tab.Wait("viewers[0].beside")
	var width, tops int
	tab.Eval("document.documentElement.scrollWidth", &width)
	tab.Eval("new Set([...document.querySelectorAll('.pane')].map(p => p.offsetTop)).size", &tops)
	if width > 390 || tops != 2 {
		t.Errorf("the page is %d wide, its four panes lie in %d lines", width, tops)
	}
}
