// Package pickle decodes Python pickles, protocols 0 to 5, as a stream.
//
// It knows data only: dicts, lists, tuples, sets, strings, bytes, numbers, booleans and None. Nothing is ever
// executed: a pickle that calls anything but the constructors of collections.OrderedDict and collections.defaultdict
// is refused, with the name of what it would have called.
//
// # Streaming
//
// A pickle is a program for a stack machine that builds one value, which for a file of a gigabyte does not fit
// in memory. So the decoder asks its Handler for the role of each list and dict when the container begins, given the
// role of the container around it, and passes a container that has a role to the handler when it is complete. The
// handler takes what it needs and returns a replacement: nothing, or a token of its own, which later references to the
// same Python object yield.
//
// Values are words of eight bytes, and memo entries words of four, because the Python pickler numbers every
// container that it writes: a file of 20 million events has 40 million memo entries.
//
// # Bounds
//
// Lengths and indexes in the input are never trusted for an allocation. Whatever the input, all tables of the decoder
// together take at most 512 MiB, and the string that is being read at most 16 MiB; beyond that, decoding fails. A process
// that does nothing else stays below 1 GiB, garbage included. The memo has at most 64 Mi entries. The decoder does not
// recurse.
//
// # Files
//
//	decoder.go, roles.go               the stream, and containers that are passed to the handler
//	opcode.go, call.go                 the stack machine, and the calls that are known
//	value.go, number.go, container.go  values; line.go and text_table.go their texts
//	memo.go, budget.go, input.go       the memo, the bound of all tables, the reader
package pickle
