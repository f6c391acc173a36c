package trace

// tagIncomplete begins the tag of a mark at which a recording begins to lack something.
const tagIncomplete = "incomplete: "

// IncompleteTag returns the tag of a mark that says what a recording lacks from there on, or as far as is known in all.
func IncompleteTag(what string) string { return tagIncomplete + what }
