package trace

import (
	"strconv"
	"strings"
)

// Rows that stand for memory allocated before the recording began have this tag. Where the block of an alloc row is known to be
// larger than its request rounded up to 512 bytes, the tag ends with the bytes of the block.
const (
	tagPreexisting = "preexisting"
	tagBlock       = " block="
)

// PreexistingTag returns the tag of a row that is older than the recording; block is the bytes of an allocation's block, or 0 to
// omit them.
func PreexistingTag(block int64) string {
	if block == 0 {
		return tagPreexisting
	}
	return tagPreexisting + tagBlock + strconv.FormatInt(block, 10)
}

// ParsePreexisting reports whether a tag is that of a row older than the recording, and returns the bytes of its block, 0 if the
// tag does not say.
func ParsePreexisting(tag string) (block int64, ok bool) {
	rest, ok := strings.CutPrefix(tag, tagPreexisting)
	if !ok || rest == "" {
		return 0, ok
	}
	text, ok := strings.CutPrefix(rest, tagBlock)
	block, err := strconv.ParseInt(text, 10, 64)
	if !ok || err != nil || block < 0 || block > MaxSize {
		return 0, false
	}
	return block, true
}
