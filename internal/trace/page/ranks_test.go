package page

import (
	"testing"

	"gm/internal/trace/page/chromium"
	"gm/internal/trace/ranks"
	"gm/internal/trace/text"
)

// TestRanks: on a phone and on a desk nothing is wider than the page of ranks, and the texts at the axes are large enough, whole and apart.
func TestRanks(t *testing.T) {
	j, err := ranks.Open(testdata + "ranks")
	if err != nil {
		t.Fatal(err)
	}
	table, err := j.Read(t.Context(), func() {})
	if err != nil {
		t.Fatal(err)
	}
	p := Ranks{Title: "test", Version: "devel", Facts: []string{"outlier     rank 2: peak of 5.84 GiB, the median of all is 3.07 GiB"}, Table: table}
	p.Rows, p.Of = text.RankTable(table)
	p.Tensors, p.All = fourRanks(t), true
	for name, screen := range map[string]chromium.Screen{"phone": {Width: 390, Height: 800, Scale: 2, Touch: true}, "desk": desk} {
		t.Run(name, func(t *testing.T) {
			tab := openPage(t, screen, p.Write)
			var width int
			if tab.Eval("document.documentElement.scrollWidth", &width); width > screen.Width {
				t.Errorf("the page is %d wide", width)
			}
			var texts []struct {
				Text              string
				Left, Right, Size float64
			}
			tab.Eval(`[...document.querySelectorAll(".curves .time, .curves .size")].filter(e => e.clientHeight).map(e => {
				const { left, right } = e.getBoundingClientRect(), size = parseFloat(getComputedStyle(e).fontSize);
				return { Text: e.innerText, Left: left, Right: right, Size: size };
			})`, &texts)
			if len(texts) < 8 {
				t.Fatalf("only %d texts", len(texts))
			}
			free := 0.0
			for _, text := range texts {
				if text.Left < 0 || text.Right > float64(screen.Width) || text.Size < 10 {
					t.Errorf("%+v", text)
				}
				if ends := text.Text[len(text.Text)-1]; ends == 's' { // a time
					if text.Left < free {
						t.Errorf("%s overlaps the time before it", text.Text)
					}
					free = text.Right
				}
			}
		})
	}
}
