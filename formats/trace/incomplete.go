package trace

// tagIncomplete is the prefix of the tag of a mark from which on a recording is incomplete.
const tagIncomplete = "incomplete: "

// IncompleteTag returns the tag of a mark that says what is missing from a recording, from the mark on or, where that is not known,
// anywhere in it.
func IncompleteTag(what string) string { return tagIncomplete + what }
