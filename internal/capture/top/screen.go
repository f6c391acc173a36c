package top

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"unicode/utf8"

	"golang.org/x/term"
)

// screen is the terminal while it shows a page.
type screen struct {
	keys    chan byte
	resized chan os.Signal
	before  *term.State // of the terminal that sends keys; nil without one
}

// Control sequences of terminals.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l\x1b[?7l" // another screen, no cursor, lines do not wrap
	leaveScreen = "\x1b[?7h\x1b[?25h\x1b[?1049l"
	toTop       = "\x1b[H"
	clearLine   = "\x1b[K"
	clearBelow  = "\x1b[J"
	reverse     = "\x1b[7m"
	plain       = "\x1b[m"
)

// openScreen sets the terminal up for a page. The caller must close the screen.
func openScreen() (*screen, error) {
	s := &screen{keys: make(chan byte), resized: make(chan os.Signal, 1)}
	if in := int(os.Stdin.Fd()); term.IsTerminal(in) {
		before, err := term.MakeRaw(in)
		if err != nil {
			return nil, fmt.Errorf("take the terminal over: %w", err)
		}
		s.before = before
		go s.readKeys()
	}
	signal.Notify(s.resized, syscall.SIGWINCH)
	if _, err := os.Stdout.WriteString(enterScreen); err != nil {
		return nil, errors.Join(fmt.Errorf("take the terminal over: %w", err), s.close())
	}
	return s, nil
}

// close restores the terminal.
func (s *screen) close() error {
	signal.Stop(s.resized)
	_, err := os.Stdout.WriteString(leaveScreen)
	if s.before != nil {
		err = errors.Join(err, term.Restore(int(os.Stdin.Fd()), s.before))
	}
	if err != nil {
		return fmt.Errorf("restore the terminal: %w", err)
	}
	return nil
}

// size returns the columns and lines of the terminal.
func (s *screen) size() (width, height int) {
	width, height, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		return 80, 24
	}
	return width, height
}

// draw puts lines on the screen.
func (s *screen) draw(lines []pageLine) error {
	width, _ := s.size()
	var out strings.Builder
	out.WriteString(toTop)
	for i, line := range lines {
		if i > 0 {
			out.WriteString("\r\n")
		}
		if line.bar {
			fill := strings.Repeat(" ", max(width-utf8.RuneCountInString(line.text), 0))
			out.WriteString(reverse + line.text + fill + plain)
		} else {
			out.WriteString(clearLine + line.text)
		}
	}
	out.WriteString(clearBelow)
	if _, err := os.Stdout.WriteString(out.String()); err != nil {
		return fmt.Errorf("draw the page: %w", err)
	}
	return nil
}

// The keys other than the letters of tables.
const (
	keyQuit      = 'q'
	keyInterrupt = 3 // Ctrl-C
	keyNext      = '\t'
	keyPrevious  = 0x80
)

// readKeys sends keys to s.keys. It ends with the process: nothing else ends a read from a terminal.
func (s *screen) readKeys() {
	buffer := make([]byte, 64)
	for {
		n, err := os.Stdin.Read(buffer)
		if err != nil {
			return
		}
		for _, k := range parseKeys(string(buffer[:n])) {
			s.keys <- k
		}
	}
}

// parseKeys returns the keys that a terminal sent. Of the escape sequences it knows arrows and shift-tab.
func parseKeys(text string) []byte {
	sequences := strings.NewReplacer("\x1b[A", "\x80", "\x1bOA", "\x80", "\x1b[D", "\x80", "\x1bOD", "\x80", "\x1b[Z", "\x80",
		"\x1b[B", "\t", "\x1bOB", "\t", "\x1b[C", "\t", "\x1bOC", "\t")
	text, _, _ = strings.Cut(sequences.Replace(text), "\x1b")
	return []byte(text)
}

// press handles a key.
func (p *page) press(key byte) {
	switch key {
	case byStack, byStream, byTag:
		p.table = key
	case keyNext, keyPrevious:
		n := p.index()
		if n < 0 {
			return
		}
		all := p.view.Processes
		step := map[byte]int{keyNext: 1, keyPrevious: len(all) - 1}[key]
		p.chosen = keyOf(&all[(n+step)%len(all)])
	}
}
