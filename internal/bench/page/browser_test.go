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
