// Package chromium opens pages in a headless Chromium, for tests that hover, click and type as a user would.
package chromium

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// Tab is an open page.
type Tab struct {
	t       testing.TB
	out     io.Writer
	session string
	next    int
	answers chan answer

	mu     sync.Mutex
	thrown []string
}

// Screen is what a page is opened on.
type Screen struct {
	Width, Height int // pixels of CSS
	Scale         float64
	Dark, Touch   bool
	Print         bool // as on paper
}

type answer struct {
	ID     int             `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// patience is how long an answer may take.
const patience = 60 * time.Second

// Open opens a file and waits until it is loaded. The test is skipped if no Chromium is installed, and fails at its end if a script of the
// page threw.
func Open(t testing.TB, file string, screen Screen) *Tab {
	t.Helper()
	program := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			program = path
			break
		}
	}
	if program == "" {
		t.Skip("no chromium is installed")
	}
	path, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	tab := &Tab{t: t, answers: make(chan answer, 16)}
	tab.start(program)
	var made struct {
		TargetID  string `json:"targetId"`
		SessionID string `json:"sessionId"`
	}
	tab.call("Target.createTarget", map[string]any{"url": "about:blank"}, &made)
	tab.call("Target.attachToTarget", map[string]any{"targetId": made.TargetID, "flatten": true}, &made)
	tab.session = made.SessionID
	tab.call("Runtime.enable", nil, nil)
	tab.call("Page.enable", nil, nil)
	scheme := "light"
	if screen.Dark {
		scheme = "dark"
	}
	media := ""
	if screen.Print {
		media = "print"
	}
	colors := map[string]string{"name": "prefers-color-scheme", "value": scheme}
	tab.call("Emulation.setEmulatedMedia", map[string]any{"media": media, "features": []any{colors}}, nil)
	tab.call("Emulation.setDeviceMetricsOverride", map[string]any{
		"width": screen.Width, "height": screen.Height, "deviceScaleFactor": max(screen.Scale, 1), "mobile": screen.Touch,
	}, nil)
	if screen.Touch {
		tab.call("Emulation.setTouchEmulationEnabled", map[string]any{"enabled": true, "maxTouchPoints": 5}, nil)
	}
	tab.call("Page.navigate", map[string]any{"url": "file://" + path}, nil)
	tab.Wait(`document.readyState === "complete" && location.protocol === "file:"`)
	return tab
}

// start starts the program, which ends with the test.
func (tab *Tab) start(program string) {
	tab.t.Helper()
	theirIn, in, err := os.Pipe()
	if err != nil {
		tab.t.Fatal(err)
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		tab.t.Fatal(err)
	}
	cmd := exec.Command(program, "--headless", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
		"--no-first-run", "--disable-dev-shm-usage", "--disable-background-networking", "--user-data-dir="+tab.t.TempDir())
	cmd.ExtraFiles = []*os.File{theirIn, theirOut}
	if err := cmd.Start(); err != nil {
		tab.t.Fatal(err)
	}
	theirIn.Close()
	theirOut.Close()
	tab.out = in
	go tab.listen(out)
	tab.t.Cleanup(func() {
		tab.session = ""
		tab.call("Browser.close", nil, nil)
		in.Close()
		done := make(chan error, 1)
		go func() { done <- cmd.Wait() }()
		select {
		case <-done:
		case <-time.After(patience):
			cmd.Process.Kill()
		}
		tab.mu.Lock()
		defer tab.mu.Unlock()
		for _, text := range tab.thrown {
			tab.t.Errorf("the page threw: %s", text)
		}
	})
}

// listen reads what Chromium says until it ends.
func (tab *Tab) listen(out io.Reader) {
	defer close(tab.answers)
	for r := bufio.NewReader(out); ; {
		text, err := r.ReadBytes(0)
		if err != nil {
			return
		}
		var a answer
		if json.Unmarshal(text[:len(text)-1], &a) != nil {
			continue
		}
		if a.Method == "Runtime.exceptionThrown" {
			tab.mu.Lock()
			tab.thrown = append(tab.thrown, string(a.Params))
			tab.mu.Unlock()
		}
		if a.ID > 0 {
			tab.answers <- a
		}
	}
}

// call calls a method of the Chrome DevTools Protocol.
func (tab *Tab) call(method string, params, result any) {
	tab.t.Helper()
	tab.next++
	request := map[string]any{"id": tab.next, "method": method}
	if params != nil {
		request["params"] = params
	}
	if tab.session != "" {
		request["sessionId"] = tab.session
	}
	text, err := json.Marshal(request)
	if err != nil {
		tab.t.Fatal(err)
	}
	if _, err := tab.out.Write(append(text, 0)); err != nil {
		tab.t.Fatalf("%s: %v", method, err)
	}
	select {
	case a, open := <-tab.answers:
		switch {
		case !open:
			tab.t.Fatalf("%s: chromium has ended", method)
		case a.Error != nil:
			tab.t.Fatalf("%s: %s", method, a.Error.Message)
		case result != nil:
			if err := json.Unmarshal(a.Result, result); err != nil {
				tab.t.Fatalf("%s: %v: %s", method, err, a.Result)
			}
		}
	case <-time.After(patience):
		tab.t.Fatalf("%s: no answer", method)
	}
}

// Eval stores the value of an expression of the page, of a promise when it is kept; into may be nil.
func (tab *Tab) Eval(expression string, into any) {
	tab.t.Helper()
	var result struct {
		Result struct {
			Value json.RawMessage `json:"value"`
		} `json:"result"`
		Exception *struct {
			Text      string `json:"text"`
			Exception struct {
				Description string `json:"description"`
			} `json:"exception"`
		} `json:"exceptionDetails"`
	}
	tab.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}, &result)
	if result.Exception != nil {
		tab.t.Fatalf("%s: %s %s", expression, result.Exception.Text, result.Exception.Exception.Description)
	}
	if into == nil {
		return
	}
	if err := json.Unmarshal(result.Result.Value, into); err != nil {
		tab.t.Fatalf("%s: %v: %s", expression, err, result.Result.Value)
	}
}

// Wait waits until a condition holds.
func (tab *Tab) Wait(condition string) {
	tab.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		var holds bool
		if tab.Eval("Boolean("+condition+")", &holds); holds {
			return
		}
	}
	tab.t.Fatalf("waited for %s", condition)
}

// Settle waits until the page has drawn what it had to.
func (tab *Tab) Settle() {
	tab.t.Helper()
	tab.Eval("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 30))))", nil)
}

// Mouse moves the pointer to a point of an element, and presses and releases its button with each of the given names: "move", "down", "up".
func (tab *Tab) Mouse(selector string, x, y float64, does ...string) {
	tab.t.Helper()
	at := tab.corner(selector)
	for _, do := range does {
		kind := map[string]string{"move": "mouseMoved", "down": "mousePressed", "up": "mouseReleased"}[do]
		params := map[string]any{"type": kind, "x": at[0] + x, "y": at[1] + y}
		if do != "move" {
			params["button"], params["clickCount"] = "left", 1
		}
		tab.call("Input.dispatchMouseEvent", params, nil)
	}
}

// Touch puts fingers on an element, each at its point of the first step, moves them along the points of the others, and lifts them.
func (tab *Tab) Touch(selector string, steps ...[][2]float64) {
	tab.t.Helper()
	corner := tab.corner(selector)
	for i, step := range steps {
		var fingers []any
		for _, at := range step {
			fingers = append(fingers, map[string]float64{"x": corner[0] + at[0], "y": corner[1] + at[1]})
		}
		kind := "touchMove"
		if i == 0 {
			kind = "touchStart"
		}
		tab.call("Input.dispatchTouchEvent", map[string]any{"type": kind, "touchPoints": fingers}, nil)
	}
	tab.call("Input.dispatchTouchEvent", map[string]any{"type": "touchEnd", "touchPoints": []any{}}, nil)
}

// corner scrolls to an element and returns its upper left corner on the screen.
func (tab *Tab) corner(selector string) (at [2]float64) {
	tab.t.Helper()
	tab.Eval(fmt.Sprintf(`(() => {
		const element = document.querySelector(%q);
		element.scrollIntoView({ block: "center" });
		const box = element.getBoundingClientRect();
		return [box.left, box.top];
	})()`, selector), &at)
	return at
}

// Wheel turns the wheel at a point of an element.
func (tab *Tab) Wheel(selector string, x, y, by float64) {
	tab.t.Helper()
	tab.Mouse(selector, x, y, "move")
	at := tab.corner(selector)
	params := map[string]any{"type": "mouseWheel", "x": at[0] + x, "y": at[1] + y, "deltaX": 0, "deltaY": by}
	tab.call("Input.dispatchMouseEvent", params, nil)
}

// Key presses a key in the element that has the focus.
func (tab *Tab) Key(key string) {
	tab.t.Helper()
	down := map[string]any{"type": "keyDown", "key": key}
	if len(key) == 1 {
		down["text"] = key
	}
	tab.call("Input.dispatchKeyEvent", down, nil)
	tab.call("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key}, nil)
}

// Screenshot returns the whole page as a PNG.
func (tab *Tab) Screenshot() []byte {
	tab.t.Helper()
	var size struct {
		Content struct {
			Width  float64 `json:"width"`
			Height float64 `json:"height"`
		} `json:"cssContentSize"`
	}
	tab.call("Page.getLayoutMetrics", nil, &size)
	var shot struct {
		Data string `json:"data"`
	}
	clip := map[string]any{"x": 0, "y": 0, "width": size.Content.Width, "height": size.Content.Height, "scale": 1}
	tab.call("Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": true, "clip": clip}, &shot)
	png, err := base64.StdEncoding.DecodeString(shot.Data)
	if err != nil {
		tab.t.Fatal(err)
	}
	return png
}
