package jsonvalue

import (
	"encoding/json"
	"errors"
	"testing"
)

func TestExplain(t *testing.T) {
	type inner struct {
		Addr  uint64
		Count int32
	}
	type document struct {
		Args  inner
		Sizes []float64
		Name  string
		On    bool
		By    map[string]int64
	}
	for text, want := range map[string]string{
		`{"Args": {"Addr": "0x7f"}}`:      "Args.Addr: a text, expected a whole number from 0 on, of 64 bits",
		`{"Args": {"Count": 1e400}}`:      "Args.Count: 1e400, expected a whole number of 32 bits",
		`{"Args": {"Count": 2147483648}}`: "Args.Count: 2147483648, expected a whole number of 32 bits",
		`{"Args": []}`:                    "Args: a list, expected an object",
		`{"Sizes": [true]}`:               "Sizes: true or false, expected a number",
		`{"Sizes": {}}`:                   "Sizes: an object, expected a list",
		`{"Name": 7}`:                     "Name: a number, expected a text",
		`{"On": 7}`:                       "On: a number, expected true or false",
		`{"By": 7}`:                       "By: a number, expected an object",
		`[]`:                              "a list, expected an object",
	} {
		var d document
		if err := Explain(json.Unmarshal([]byte(text), &d)); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	if other := errors.New("other"); Explain(other) != other || Explain(nil) != nil {
		t.Error("errors about something else changed")
	}
}
