package page

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"gm/internal/trace/importer/tracetest"
	"gm/internal/trace/page/chromium"
	"gm/internal/units"
)

// open opens the page of recordings: of one, or of two that are compared.
func open(t testing.TB, screen chromium.Screen, all ...*Recording) *chromium.Tab {
	t.Helper()
	p := &Page{Title: "test", Version: "devel", A: all[0]}
	if len(all) > 1 {
		p.B = all[1]
	}
	tab := openPage(t, screen, p.Write)
	tab.Wait("viewers.every(v => v.plots && v.plots[0].positions)")
	tab.Settle()
	return tab
}

// openPage opens what a page writes.
func openPage(t testing.TB, screen chromium.Screen, write func(io.Writer) error) *chromium.Tab {
	t.Helper()
	var out bytes.Buffer
	if err := write(&out); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return chromium.Open(t, file, screen)
}

var desk = chromium.Screen{Width: 1280, Height: 900}

func recording(t *testing.T, name string) *Recording {
	t.Helper()
	return read(t, tracetest.Read(t, testdata+name), name)
}

// textOf returns the text of an element of the page.
func textOf(tab *chromium.Tab, selector string) (text string) {
	tab.Eval("document.querySelector('"+selector+"').innerText", &text)
	return text
}

// TestLayout compares what the script lays out with the live bytes of a walk through the trace: the stack at the peak and at random
// moments, in each order, and the pixels of the pictures.
func TestLayout(t *testing.T) {
	const name = "snapshots/gpt2-expandable.pickle.gz"
	file := tracetest.Read(t, testdata+name)
	states := walk(t, tracetest.Open(t, file, name), 0)
	tab := open(t, desk, recording(t, name))
	var peak int
	tab.Eval("viewers[0].moment", &peak)
	rng := rand.New(rand.NewPCG(1, 2))
	for _, choice := range []string{"1", "viewers[0].choose('colour', 'stack')", "viewers[0].choose('order', 'time')"} {
		tab.Eval(choice+", 1", nil)
		at := []int{0, peak, len(states) - 1}
		for range 20 {
			at = append(at, rng.IntN(len(states)))
		}
		for _, at := range at {
			var sum, reserved int64
			tab.Eval(`(() => { const v = viewers[0]; v.sweep.start(0); v.sweep.advance(`+strconv.Itoa(at)+`);
				return v.sweep.order().reduce((sum, i) => sum + v.tensors.sizes[i], 0); })()`, &sum)
			tab.Eval("viewers[0].tensors.reserved("+strconv.Itoa(at)+")", &reserved)
			if want := states[at]; sum != want.live || reserved != want.reserved {
				t.Errorf("%s, position %d: %d bytes are stacked and %d reserved, want %+v", choice, at, sum, reserved, want)
			}
		}
	}
	tab.Settle()
	// Each column of the stack is as high as the bytes that live at its position, and each of the map shows no more than these.
	var columns [][4]float64 // position, pixels of tensors in both plots, bytes of a pixel of the stack
	tab.Eval(`viewers[0].plots[0].positions.length && [...viewers[0].plots[0].positions].map((position, x) => [position, ...viewers[0].plots.map(p =>
		p.pixels.subarray(x * p.lines, (x + 1) * p.lines).filter(i => i >= 0).length), viewers[0].plots[0].most / viewers[0].plots[0].lines])`, &columns)
	if len(columns) < 1000 {
		t.Fatalf("%d columns", len(columns))
	}
	for x, c := range columns {
		live := float64(states[int(c[0])].live)
		if high := c[1] * c[3]; high < live-c[3] || high > live+c[3] {
			t.Fatalf("column %d at position %v is %v bytes high, want %v", x, c[0], high, live)
		}
		if c[2] == 0 && live > 1e8 {
			t.Fatalf("column %d of the map is empty at position %v", x, c[0])
		}
	}
}

// TestPointer hovers over the pictures and clicks into them.
func TestPointer(t *testing.T) {
	tab := open(t, desk, recording(t, "snapshots/gpt2.pickle.gz"))
	const canvas = ".plot.stack canvas"
	tab.Mouse(canvas, 640, 385, "move")
	tab.Settle()
	if tip := textOf(tab, ".plot.stack .tip"); !strings.Contains(tip, "parameters") || !strings.Contains(tip, "modeling_utils.py") {
		t.Errorf("the tip at the bottom says %q", tip)
	}
	tab.Mouse(canvas, 640, 385, "move", "down", "up")
	tab.Settle()
	card := textOf(tab, ".tensor")
	for _, want := range []string{"parameters", "address\n0x", "to the end", "above\n", "train.py:7", "segment\n"} {
		if !strings.Contains(card, want) {
			t.Errorf("the card lacks %q: %s", want, card)
		}
	}
	if title := textOf(tab, ".moment h4"); strings.Contains(title, "peak") {
		t.Errorf("the moment is still the peak: %s", title)
	}
	// A box that is dragged is shown, in time and in bytes; a click on All shows all again.
	var shown [4]float64
	const window = "[viewers[0].from, viewers[0].to, viewers[0].plots[0].lo, viewers[0].plots[0].hi]"
	tab.Mouse(canvas, 300, 200, "move", "down")
	tab.Mouse(canvas, 500, 300, "move", "up")
	tab.Settle()
	tab.Eval(window, &shown)
	if shown[1]-shown[0] > 1500 || shown[0] < 700 || shown[2] < 1e9 || shown[3] > 4e9 {
		t.Errorf("the box shows %v", shown)
	}
	tab.Eval("document.querySelector('[data-do=all]').click()", nil)
	tab.Eval("document.querySelector('[data-do=peak]').click()", nil)
	tab.Settle()
	if title := textOf(tab, ".moment h4"); !strings.Contains(title, "At the peak, row 3,878") {
		t.Errorf("the peak is %s", title)
	}
	before := shown
	tab.Wheel(canvas, 640, 200, -200)
	tab.Settle()
	tab.Eval(window, &shown)
	if shown[1]-shown[0] >= 5213./8 || shown[1]-shown[0] <= 50 {
		t.Errorf("the wheel shows %v, before %v", shown, before)
	}
	tab.Mouse(".plot.map canvas", 640, 60, "move", "down", "up")
	tab.Settle()
	if tip := textOf(tab, ".plot.map .tip"); !strings.Contains(tip, "0x") {
		t.Errorf("the tip of the map says %q", tip)
	}
	// The flame graph highlights what it is clicked at.
	tab.Mouse(".flame canvas", 100, 28, "move", "down", "up")
	tab.Settle()
	if found := textOf(tab, ".found"); !strings.Contains(found, "tensors match") {
		t.Errorf("after a click into the flame graph: %q", found)
	}
}

// TestBytes: the script writes sizes as Go does.
func TestBytes(t *testing.T) {
	sizes := []int64{0, 1, 1023, 1024, 1<<20 - 1, 22151168, 1<<30 + 1<<27, 99<<20 + 1<<19 + 1<<18, 104857600 - 5243, 105119744, 103<<20 + 1<<18, 1<<40 + 1<<37}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		sizes = append(sizes, rng.Int64N(1<<uint(1+rng.IntN(45))))
	}
	text, err := json.Marshal(sizes)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	open(t, desk, recording(t, "snapshots/gpt2.pickle.gz")).Eval(string(text)+".map(n => bytes(n))", &got)
	for i, n := range sizes {
		if want := units.Bytes(n).String(); got[i] != want {
			t.Errorf("%d bytes are %s, want %s", n, got[i], want)
		}
	}
}

// TestKeys moves with the keyboard alone, searches and changes the axis.
func TestKeys(t *testing.T) {
	tab := open(t, desk, recording(t, "captures/oom.parquet"))
	tab.Eval("document.querySelector('.plot.stack').focus()", nil)
	tab.Key("o")
	tab.Settle()
	if status := textOf(tab, ".now"); !strings.Contains(status, "Out of memory at row 31,266: 156 MiB") {
		t.Errorf("at the failure: %q", status)
	}
	tab.Key("ArrowUp")
	tab.Key("ArrowUp")
	tab.Settle()
	if card := textOf(tab, ".tensor"); !strings.Contains(card, "size\n") {
		t.Errorf("the tensor that is chosen: %q", card)
	}
	var span, zoomed, from, next float64
	tab.Eval("viewers[0].to - viewers[0].from", &span)
	tab.Key("+")
	tab.Eval("viewers[0].to - viewers[0].from", &zoomed)
	if zoomed*2 != span {
		t.Errorf("+ shows %v of %v", zoomed, span)
	}
	tab.Eval("viewers[0].iterate(0), viewers[0].from", &from)
	tab.Key("N")
	tab.Eval("viewers[0].from", &next)
	if next >= from {
		t.Errorf("the iteration before begins at %v, this one at %v", next, from)
	}
	var follows bool
	tab.Eval(`(() => { const v = viewers[0], { moment, tensors: { live } } = v, from = v.position(v.from), to = v.position(v.to - 1); // its end is a row of the next
		return moment > from && moment <= to && live[moment] === Math.max(...live.slice(from + 1, to + 1)); })()`, &follows)
	if title := textOf(tab, ".moment h4"); !follows {
		t.Errorf("the moment is not the peak of the iteration: %s", title)
	}
	tab.Key("/")
	for _, letter := range "TRAIN.PY:115" {
		tab.Key(string(letter))
	}
	tab.Settle()
	if found := textOf(tab, ".found"); !strings.HasPrefix(found, "6 tensors match; 80 GiB in 4 live") {
		t.Errorf("found: %q", found)
	}
	tab.Eval("viewers[0].choose('axis', 'seconds'), viewers[0].act('all')", nil)
	tab.Settle()
	var to float64
	tab.Eval("viewers[0].to", &to)
	if to < 1e9 {
		t.Errorf("the axis ends at %v ns", to)
	}
	tab.Eval("viewers[0].show(1).then(() => viewers[0].search('pytorch'))", nil) // before anything is drawn
	tab.Settle()
	if found := textOf(tab, ".found"); !strings.Contains(found, "tensors match") {
		t.Errorf("found in another part: %q", found)
	}
	if tags := textOf(tab, ".moment"); !strings.Contains(tags, "memory by=pytorch") {
		t.Errorf("the driver's allocations are %q", tags)
	}
}

// TestNoStack: a page whose moment has tensors without a stack says why; one of all stacks, or none, does not.
func TestNoStack(t *testing.T) {
	for name, want := range map[string]string{
		"snapshots/gpt2.pickle.gz": "(no stack): made by a thread", "profiles/linear.json.gz": "(no stack): older than the recording",
		"snapshots/gpt2-cut.pickle.gz": "(no stack): older than the recording, or made by a thread", "resnet152-V.parquet": "",
	} {
		tab := open(t, desk, recording(t, name))
		var got string
		tab.Eval("document.querySelector('.moment .bare')?.innerText ?? ''", &got)
		if got, _, _ = strings.Cut(got, " that runs no Python"); got != want {
			t.Errorf("%s: it is explained by %q, want %q", name, got, want)
		}
	}
}

// TestManyIterations: where not all numbers of iterations have room, there are some from the first to the last.
func TestManyIterations(t *testing.T) {
	tab := open(t, desk, recording(t, "snapshots/gpt2.pickle.gz"))
	for count, want := range map[int]string{12: "[0 1 2 3 4 5 6 7 8 9 10 11]", 100: "[0 5 10 ", 260: "[0 10 20 "} {
		var numbers []string
		tab.Eval(fmt.Sprintf(`(() => { const v = viewers[0], plot = v.plots[0], numbers = [], c = plot.canvas.getContext("2d"), fill = c.fillText;
			c.fillText = text => numbers.push(text);
			v.tensors.meta.sections = Array.from({length: %[1]d}, (_, i) => ({from: {row: 5200 * i / %[1]d}, to: {row: 5200 * (i + 1) / %[1]d}}));
			plot.sections(c, plot.frame);
			c.fillText = fill;
			return numbers; })()`, count), &numbers)
		if got := fmt.Sprint(numbers); !strings.HasPrefix(got, want) {
			t.Errorf("of %d iterations there are the numbers %s", count, got)
		}
		if last, err := strconv.Atoi(numbers[len(numbers)-1]); err != nil || last < count-count/10 {
			t.Errorf("of %d iterations the last number is %d, %v", count, last, err)
		}
	}
}

// TestFailureAboveIterations: the name of a failed request covers no number of an iteration.
func TestFailureAboveIterations(t *testing.T) {
	tab := open(t, desk, recording(t, "captures/oom.parquet"))
	var lines map[string]float64 // the baseline of each text above the picture
	tab.Eval(`(() => { const v = viewers[0], plot = v.plots[0], f = plot.frame, lines = {}, c = plot.canvas.getContext("2d"), fill = c.fillText;
		c.fillText = (text, x, y) => { lines[text] = y; };
		plot.sections(c, f);
		plot.failures(c, f);
		c.fillText = fill;
		return lines; })()`, &lines)
	if lines["OOM"] > lines["5"]-12 || lines["OOM"] < 12 {
		t.Errorf("the texts above the picture are at %v", lines)
	}
}

// TestCompare: what differs follows the moments of both sides.
func TestCompare(t *testing.T) {
	tab := open(t, desk, recording(t, "snapshots/gpt2.pickle.gz"), recording(t, "snapshots/gpt2-expandable.pickle.gz"))
	tab.Wait("document.querySelector('.compared .tags tr')")
	if row := textOf(tab, ".compared .tags"); !strings.Contains(row, "activations\t2.20 GiB\t2.20 GiB\t±0 B") {
		t.Errorf("by tag: %q", row)
	}
	var changed int
	if tab.Eval("document.querySelectorAll('.compared .more, .compared .less').length", &changed); changed > 0 {
		t.Errorf("%d groups differ, although only the start of the program does: %q", changed, textOf(tab, ".compared .stacks"))
	}
	phone := open(t, chromium.Screen{Width: 390, Height: 800, Touch: true}, recording(t, "snapshots/gpt2.pickle.gz"), recording(t, "snapshots/gpt2-expandable.pickle.gz"))
	var tallest int
	phone.Eval("Math.round(Math.max(...[...document.querySelectorAll('.compared tbody th')].map(e => e.getBoundingClientRect().height)))", &tallest)
	if tallest > 30 {
		t.Errorf("on a phone a stack takes %d pixels, more than a line", tallest)
	}
	tab.Eval("viewers[1].setMoment(0)", nil)
	if row := textOf(tab, ".compared .tags"); !strings.Contains(row, "activations\t2.20 GiB\t0 B\t−2.20 GiB") {
		t.Errorf("by tag, with nothing on one side: %q", row)
	}
}

// TestCompareWithoutStacks: of two runs of which one has no stacks, those of the other are shown; of two without, the sizes are.
func TestCompareWithoutStacks(t *testing.T) {
	const bare, stacked = "captures/opt1.3b.parquet", "captures/oom.parquet"
	for _, c := range []struct{ a, b, title, note, first string }{
		{bare, stacked, "stack, the innermost", "A, opt1.3b.parquet, has no stacks", "train.py:115 main < train.py:135\t–\t120 GiB\t–"},
		{stacked, bare, "stack, the innermost", "B, opt1.3b.parquet, has no stacks", "train.py:115 main < train.py:135\t120 GiB\t–\t–"},
		{bare, bare, "size (neither run has stacks)", "", "blocks of 1004.9 MiB\t2.94 GiB\t2.94 GiB\t±0 B"},
	} {
		tab := open(t, desk, recording(t, c.a), recording(t, c.b))
		tab.Wait("document.querySelector('.compared .stacks tr')")
		if title := textOf(tab, ".compared .by"); !strings.HasPrefix(title, c.title) {
			t.Errorf("%s and %s: the table is by %q", c.a, c.b, title)
		}
		if note := textOf(tab, ".compared .without"); !strings.HasPrefix(note, c.note) || (note == "") != (c.note == "") {
			t.Errorf("%s and %s: the note is %q", c.a, c.b, note)
		}
		if row := textOf(tab, ".compared .stacks tr"); row != c.first {
			t.Errorf("%s and %s: the first row is %q", c.a, c.b, row)
		}
		for i := range 2 {
			strip := fmt.Sprintf("(() => { const c = viewers[%d].strip; return c.getContext('2d').getImageData(c.width / 2, c.height * .8, 1, 1).data[3]; })()", i)
			var drawn int
			if tab.Eval(strip, &drawn); drawn == 0 {
				t.Errorf("%s and %s: strip %d is empty", c.a, c.b, i)
			}
		}
	}
}

// TestScreens: on a phone and in the dark nothing is wider than the page, and the pictures have the colours of the scheme.
func TestScreens(t *testing.T) {
	r := recording(t, "captures/oom.parquet")
	for name, screen := range map[string]chromium.Screen{
		"phone": {Width: 390, Height: 800, Scale: 2, Touch: true}, "dark": {Width: 1280, Height: 900, Dark: true},
		"paper": {Width: 760, Height: 1000, Print: true, Dark: true},
	} {
		t.Run(name, func(t *testing.T) {
			tab := open(t, screen, r)
			var width int
			tab.Eval("document.documentElement.scrollWidth", &width)
			if width > screen.Width {
				t.Errorf("the page is %d wide", width)
			}
			tab.Eval("viewers[0].choose('colour', 'stack')", nil)
			tab.Settle()
			var controls bool
			if tab.Eval("document.querySelector('.choices').clientHeight > 0", &controls); controls == screen.Print {
				t.Errorf("the controls are there: %v", controls)
			}
			tab.Eval("Math.round(Math.max(...[...document.querySelectorAll('.holders button')].map(b => b.querySelector('.name').getBoundingClientRect().height)))", &width)
			if width > 30 {
				t.Errorf("a stack takes %d pixels, more than a line", width)
			}
			picture, err := png.Decode(bytes.NewReader(tab.Screenshot()))
			if err != nil {
				t.Fatal(err)
			}
			if dark := brightness(picture, 5, 5) < 100; dark != (screen.Dark && !screen.Print) {
				t.Errorf("dark: %v", dark)
			}
		})
	}
}

// TestFingers: a finger that taps chooses, two that part zoom in time and bytes, one that moves then moves the picture.
func TestFingers(t *testing.T) {
	tab := open(t, chromium.Screen{Width: 390, Height: 800, Scale: 2, Touch: true}, recording(t, "snapshots/gpt2.pickle.gz"))
	const canvas = ".plot.stack canvas"
	tab.Touch(canvas, [][2]float64{{200, 246}})
	tab.Settle()
	if card := textOf(tab, ".tensor"); !strings.Contains(card, "parameters") {
		t.Errorf("a tap at the bottom chose %q", card)
	}
	const unfold = "document.querySelectorAll('.holders')[1].querySelector('button').click()"
	tab.Eval(unfold, nil)
	if frames := textOf(tab, ".holders .frames"); !strings.Contains(frames, "train.py:") {
		t.Errorf("a stack unfolds to %q", frames)
	}
	var left int
	tab.Eval(unfold+", document.querySelectorAll('.holders .frames').length", &left)
	if left != 0 {
		t.Errorf("%d stacks stay unfolded", left)
	}
	var all, zoomed, moved [4]float64
	const window = "[viewers[0].from, viewers[0].to, viewers[0].plots[0].lo, viewers[0].plots[0].hi]"
	tab.Eval(window, &all)
	tab.Touch(canvas, [][2]float64{{180, 100}, {220, 160}}, [][2]float64{{160, 80}, {240, 180}}, [][2]float64{{140, 70}, {260, 190}})
	tab.Settle()
	tab.Eval(window, &zoomed)
	if part := (zoomed[1] - zoomed[0]) / (all[1] - all[0]); part < 0.2 || part > 0.5 || zoomed[3]-zoomed[2] > 0.7*(all[3]-all[2]) {
		t.Errorf("%v became %v", all, zoomed)
	}
	tab.Touch(canvas, [][2]float64{{200, 120}}, [][2]float64{{180, 120}}, [][2]float64{{150, 120}})
	tab.Settle()
	tab.Eval(window, &moved)
	if moved[0] <= zoomed[0] || moved[1]-moved[0] < 0.99*(zoomed[1]-zoomed[0]) {
		t.Errorf("%v moved to %v", zoomed, moved)
	}
}

// BenchmarkOpen measures, on a trace of 1.1 million rows, the milliseconds from the begin of loading to the first picture of all of it, and
// those of drawing it anew and of the flame graph of all of it.
func BenchmarkOpen(b *testing.B) {
	name := filepath.Join(os.Getenv("GM_SHARED"), "traces", "generate-N.pickle.gz")
	if _, err := os.Stat(name); err != nil {
		b.Skip("GM_SHARED has no traces/generate-N.pickle.gz")
	}
	r := read(b, tracetest.Read(b, name), "generate-N")
	var opened, drawn, weighed float64
	for b.Loop() {
		var once, again, flame float64
		tab := open(b, desk, r)
		tab.Eval("viewers[0].drawn", &once)
		tab.Eval("(() => { const begun = performance.now(); viewers[0].rasterAll(1); return performance.now() - begun; })()", &again)
		tab.Eval(`(() => { const begun = performance.now(); viewers[0].choose("flame", "range"); return performance.now() - begun; })()`, &flame)
		opened, drawn, weighed = opened+once, drawn+again, weighed+flame
	}
	b.ReportMetric(opened/float64(b.N), "open-ms")
	b.ReportMetric(drawn/float64(b.N), "draw-ms")
	b.ReportMetric(weighed/float64(b.N), "flame-ms")
}

func brightness(picture image.Image, x, y int) uint32 {
	r, g, b, _ := picture.At(x, y).RGBA()
	return (r + g + b) / 3 >> 8
}
