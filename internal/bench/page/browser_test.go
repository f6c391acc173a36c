package page

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gm/internal/trace/page/chromium"
)

// TestBrowser: the curves and the tensors of a page work beside each other.
func TestBrowser(t *testing.T) {
	sections := measure(t, "captures/oom.parquet", "stitch,torch", 0)
	file := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(file, []byte(write(t, sections)), 0o600); err != nil {
		t.Fatal(err)
	}
	tab := chromium.Open(t, file, chromium.Screen{Width: 1280, Height: 900})
	tab.Wait("viewers[0].plots && viewers[0].plots[0].positions && document.querySelector('.figure .keys input')")
	for canvas, want := range map[string]string{".chart": "stitch", ".figure .map": "reserved", ".plot.stack": "live", ".plot.map": "0x"} {
		tab.Mouse(canvas+" canvas", 600, 150, "move")
		tab.Settle()
		var text string
		tab.Eval("document.querySelector('"+canvas+" .tip').innerText", &text)
		if !strings.Contains(text, want) {
			t.Errorf("the tip of %s says %q, without %s", canvas, text, want)
		}
	}
}

// TestPaper: a page that is about to be printed is light and as narrow as a sheet, no picture is stretched, and the legend has no boxes.
func TestPaper(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(file, []byte(write(t, measure(t, "captures/oom.parquet", "stitch,torch", 0))), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, screen := range map[string]chromium.Screen{
		"before": {Width: 1280, Height: 900, Dark: true}, "on paper": {Width: 700, Height: 1000, Dark: true, Print: true},
	} {
		tab := chromium.Open(t, file, screen)
		tab.Wait("viewers[0].plots && viewers[0].plots[0].positions && document.querySelector('.figure .keys input')")
		tab.Eval("dispatchEvent(new Event('beforeprint'))", nil)
		var stretched, width float64
		var paper string
		tab.Eval(`Math.max(...[".chart", ".figure .map", ".plot.stack", ".plot.map", ".flame"].map(s => document.querySelector(s + " canvas")).map(c =>
			Math.abs(c.width / c.clientWidth * c.clientHeight / c.height - 1)))`, &stretched)
		tab.Eval("document.body.getBoundingClientRect().width", &width)
		tab.Eval("viewers[0].colors.paper", &paper)
		if stretched > .02 || width > 720 || paper != "#ffffff" {
			t.Errorf("%s: a picture is stretched by %v, the page %v wide and on %s", name, stretched, width, paper)
		}
		var boxes int
		tab.Eval("[...document.querySelectorAll('.figure input')].filter(i => i.checkVisibility()).length", &boxes)
		if boxes > 0 == screen.Print {
			t.Errorf("%s: the legend has %d boxes", name, boxes)
		}
		tab.Eval("dispatchEvent(new Event('afterprint'))", nil)
		if tab.Eval("viewers[0].colors.paper", &paper); !screen.Print && paper == "#ffffff" {
			t.Errorf("%s: the page is still as on paper", name)
		}
	}
}
