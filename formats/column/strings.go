package column

import "fmt"

// Strings numbers the distinct strings of a file, in the order in which they were first seen.
// Code 0 is the empty string. It is not safe for concurrent use.
type Strings struct {
	texts []string
	codes map[string]int32
	bytes int64
}

// NewStrings returns a table that holds only the empty string.
func NewStrings() *Strings {
	return &Strings{texts: []string{""}, codes: map[string]int32{"": 0}}
}

// Code returns the number of text. A new text gets the next number.
func (s *Strings) Code(text string) int32 {
	if code, ok := s.codes[text]; ok {
		return code
	}
	code := int32(len(s.texts))
	s.texts = append(s.texts, text)
	s.codes[text] = code
	s.bytes += int64(len(text))
	return code
}

// add is Code for a text from a file, which it copies. It fails if the table exceeds the bounds.
func (s *Strings) add(text []byte) (int32, error) {
	if code, ok := s.codes[string(text)]; ok {
		return code, nil
	}
	code := s.Code(string(text))
	return code, s.check()
}

// check fails if the table is larger than readers accept.
func (s *Strings) check() error {
	if len(s.texts) > MaxStrings || s.bytes > MaxTexts {
		return fmt.Errorf("%d distinct strings of %d bytes, at most %d of %d bytes can be read",
			len(s.texts), s.bytes, MaxStrings, MaxTexts)
	}
	return nil
}

// Text returns the string numbered code.
func (s *Strings) Text(code int32) string {
	if code < 0 || int(code) >= len(s.texts) {
		panic(fmt.Sprintf("BUG: string code %d of a table of %d", code, len(s.texts)))
	}
	return s.texts[code]
}

// Len returns the number of strings, the empty one included.
func (s *Strings) Len() int { return len(s.texts) }

// Known returns the number of text; ok is false if it has none.
func (s *Strings) Known(text string) (code int32, ok bool) {
	code, ok = s.codes[text]
	return code, ok
}
