package main

import (
	"fmt"
	"testing"
)

func TestSequences(t *testing.T) {
	for text, want := range map[string]string{
		"gpt-7b":                           "[65536] gpt-7b,seq=9",
		"gpt-7b,tp=4":                      "[65536] gpt-7b,tp=4,seq=9",
		"gpt-7b,seq=1Ki,tp=4":              "[1024] gpt-7b,seq=9,tp=4",
		"gpt-7b,layers=2,seq=1K,3K,5,tp=4": "[1024 3072 5] gpt-7b,layers=2,seq=9,tp=4",
		"gpt-7b,seq=1Ki..5Ki":              "[1024 2048 4096 5120] gpt-7b,seq=9",
		"gpt-7b,seq=4..4,1..2":             "[4 1 2] gpt-7b,seq=9",
		"gpt-7b,seq=0..4":                  `seq: "0..4": lengths are 1 or more, and a range begins with its shortest`,
		"gpt-7b,seq=1..":                   `seq: "" is not a number such as 128 or 64Ki`,
		"alexnet":                          "network alexnet has no layers of sequences",
	} {
		s, err := parseSequences(text)
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = fmt.Sprintf("%d %s", s.tokens, s.at(9))
		}
		if got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func TestMultiple(t *testing.T) {
	for _, test := range [][3]int64{{1024, 1, 1024}, {1024, 8, 1024}, {1024, 40, 5120}, {1024, 63, 64512}} {
		if got := multiple(test[0], test[1]); got != test[2] {
			t.Errorf("%d and %d: %d", test[0], test[1], got)
		}
	}
}
