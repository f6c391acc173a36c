package column

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

func TestThriftSkip(t *testing.T) {
	deep := bytes.Repeat([]byte{0x1c}, 40) // a struct whose field 1 is a struct whose field 1 ...
	for name, c := range map[string]struct {
		typ  byte
		data string
		left int
		err  error
	}{
		"i8":                          {thriftI8, "\x07+", 1, nil},
		"i64":                         {thriftI64, "\xff\x01+", 1, nil},
		"i64 without end":             {thriftI64, "\xff\xff", 0, errThriftShort},
		"i64 of eleven bytes":         {thriftI64, strings.Repeat("\xff", 11), 0, errThriftBad},
		"double":                      {thriftDouble, "12345678+", 1, nil},
		"double cut":                  {thriftDouble, "1234", 0, errThriftShort},
		"string":                      {thriftBinary, "\x03abc+", 1, nil},
		"string beyond the end":       {thriftBinary, "\x04abc", 0, errThriftShort},
		"string of 2^63 bytes":        {thriftBinary, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01abc", 0, errThriftShort},
		"list":                        {thriftList, "\x23ab+", 1, nil},
		"list of booleans":            {thriftList, "\x31\x01\x02\x01+", 1, nil},
		"list of 2^62 bytes":          {thriftList, "\xf3\xff\xff\xff\xff\xff\xff\xff\xff\x3fab", 0, errThriftShort},
		"map":                         {thriftMap, "\x02\x38a\x01bc\x01d+", 1, nil},
		"map, empty":                  {thriftMap, "\x00+", 1, nil},
		"struct":                      {thriftStruct, "\x13a\x11\x08\x02\x01x\x00+", 1, nil},
		"struct with a long id":       {thriftStruct, "\x05\xa0\x06\x02\x00+", 1, nil},
		"struct without end":          {thriftStruct, "\x13a", 0, errThriftShort},
		"structs nested too deep":     {thriftStruct, string(deep), 0, errThriftBad},
		"unknown type":                {14, "abc", 0, errThriftBad},
		"struct with a field of stop": {thriftStruct, "\x10", 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := &thriftReader{data: []byte(c.data)}
			r.skip(c.typ)
			if left := len(r.data) - r.pos; !errors.Is(r.err, c.err) || left != c.left && c.err == nil {
				t.Errorf("%v with %d bytes left, want %v with %d", r.err, left, c.err, c.left)
			}
		})
	}
}

func TestThriftListLimit(t *testing.T) {
	r := &thriftReader{data: []byte("\x43abcd")}
	r.list(thriftList, 3, func(byte) { t.Error("visited") })
	if !errors.Is(r.err, errThriftLong) {
		t.Error(r.err)
	}
}
