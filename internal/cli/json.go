package cli

import (
	"encoding/json"
	"io"
)

// WriteJSON prints a value as indented JSON, as --json does.
func WriteJSON(w io.Writer, value any) error {
	out := encoder(w)
	out.SetIndent("", "  ")
	return out.Encode(value)
}

// WriteJSONLine prints a value as JSON on one line, for a command that prints a sequence of values.
func WriteJSONLine(w io.Writer, value any) error { return encoder(w).Encode(value) }

// encoder does not escape <, > and &, since the JSON is not embedded in HTML.
func encoder(w io.Writer) *json.Encoder {
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	return out
}
