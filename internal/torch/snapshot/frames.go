package snapshot

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"gm/formats/column"
	"gm/internal/torch/pickle"
)

const (
	maxFrameText = 1 << 10   // bytes of a frame's text
	maxStackText = 64 << 10  // bytes of a folded stack
	maxStacks    = 128 << 20 // bytes of all distinct stacks, half of what a trace may hold of texts

	// What a distinct frame or stack takes beside its text: it is in a list and in maps.
	stackCost = 160

	// maxTexts bounds the distinct texts of a trace, so that room is left for the names of pools.
	maxTexts = column.MaxStrings - 2*maxPools
	maxPools = 1 << 16
)

// Tokens that stand for a frame and for a list of frames, once those are handed over.
const (
	frameToken = 0
	stackToken = 1 << 27
	tokenCode  = stackToken - 1
)

// stacks folds lists of frames, each distinct list once.
type stacks struct {
	strings *column.Strings
	frames  []string // texts of the distinct frames
	codes   map[string]uint32
	folded  map[string]int32 // by the frames' codes
	bytes   int
	left    int // stacks left out
	cut     int // stacks without their outermost frames
	key     []byte
	text    []byte
}

func newStacks(strings *column.Strings) *stacks {
	return &stacks{strings: strings, codes: make(map[string]uint32), folded: make(map[string]int32)}
}

// frame reads a frame dict and returns its token.
func (s *snapshot) frame(v pickle.Value) (pickle.Value, error) {
	var name, file string
	line := int64(0)
	items := s.dec.Items(v)
	for i := 0; i+1 < len(items); i += 2 {
		switch s.field(items[i]) {
		case fieldName:
			name = s.dec.Text(items[i+1])
		case fieldFilename:
			file = s.dec.Text(items[i+1])
		case fieldLine:
			line, _ = s.dec.Int64(items[i+1])
		}
	}
	code, err := s.rec.stacks.frame(name, file, line)
	if err != nil {
		return 0, err
	}
	return pickle.MakeToken(frameToken | uint64(code)), nil
}

// frame numbers the text of a frame, "name (file:line)".
func (t *stacks) frame(name, file string, line int64) (uint32, error) {
	text := clean(name, maxFrameText/2)
	if file != "" || line != 0 {
		text += " (" + clean(file, maxFrameText/2-32) + ":" + strconv.FormatInt(line, 10) + ")"
	}
	if code, ok := t.codes[text]; ok {
		return code, nil
	}
	if len(t.frames) >= tokenCode || t.bytes+len(text)+stackCost > maxStacks {
		return 0, fmt.Errorf("more than %d bytes of distinct stack frames", maxStacks)
	}
	t.bytes += len(text) + stackCost
	code := uint32(len(t.frames))
	t.frames = append(t.frames, text)
	t.codes[text] = code
	return code, nil
}

// clean makes text fit to be part of a folded stack, where a semicolon parts the frames, and no longer than limit
// bytes; of a longer one the end is kept, where file names differ.
func clean(text string, limit int) string {
	if len(text) > limit {
		text = strings.ToValidUTF8(text[len(text)-limit:], "")
	}
	if strings.ContainsAny(text, ";\n\r") {
		text = strings.NewReplacer(";", ",", "\n", " ", "\r", " ").Replace(text)
	}
	return text
}

// framesDone folds a list of frames, innermost first, and returns its token.
func (s *snapshot) framesDone(v pickle.Value) (pickle.Value, error) {
	t := s.rec.stacks
	t.key = t.key[:0]
	for _, item := range s.dec.Items(v) {
		if item.Kind() != pickle.Token || item.Token() >= stackToken {
			return 0, fmt.Errorf("frames hold %v, not only frames", item.Kind())
		}
		t.key = binary.LittleEndian.AppendUint32(t.key, uint32(item.Token()))
	}
	return pickle.MakeToken(stackToken | uint64(t.fold())), nil
}

// fold returns the code of the folded stack of the frames in t.key.
func (t *stacks) fold() int32 {
	if len(t.key) == 0 {
		return 0
	}
	if code, ok := t.folded[string(t.key)]; ok {
		return code
	}
	if t.bytes+len(t.key)+stackCost > maxStacks || t.strings.Len() >= maxTexts {
		t.left++
		return 0
	}
	t.text = t.text[:0]
	kept := t.kept()
	if kept < len(t.key) {
		t.text = append(t.text, leftOut...)
		t.cut++
	}
	for i := kept - 4; i >= 0; i -= 4 {
		t.text = append(t.text, t.frames[binary.LittleEndian.Uint32(t.key[i:])]...)
		if i > 0 {
			t.text = append(t.text, ';')
		}
	}
	code := t.strings.Code(string(t.text))
	t.folded[string(t.key)] = code
	t.bytes += len(t.text) + len(t.key) + stackCost
	return code
}

// leftOut stands for the outermost frames of a stack that is too long.
const leftOut = "...;"

// kept returns how much of t.key, which begins with the innermost frame, is the stack's text.
func (t *stacks) kept() int {
	n := len(leftOut)
	for i := 0; i < len(t.key); i += 4 {
		if n += len(t.frames[binary.LittleEndian.Uint32(t.key[i:])]) + 1; n > maxStackText {
			return i
		}
	}
	return len(t.key)
}

// stackOf returns the code of the stack that a "frames" value stands for.
func stackOf(v pickle.Value) (int32, error) {
	switch {
	case v.Kind() == pickle.None:
		return 0, nil
	case v.Kind() != pickle.Token || v.Token() < stackToken:
		return 0, fmt.Errorf("frames is %v", v.Kind())
	}
	return int32(v.Token() & tokenCode), nil
}
