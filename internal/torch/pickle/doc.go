// Package pickle decodes Python pickles, protocols 0 to 5, as a stream.
//
// It knows data only: dicts, lists, tuples, sets, strings, bytes, numbers, booleans and None. Nothing is ever
// executed: a pickle that calls anything but the constructors of collections.OrderedDict and collections.defaultdict
// is refused, with the name of what it would have called.
//
// # Streaming
//
// A pickle is a program for a stack machine that builds one value, which for a file of a gigabyte does not fit
// in memory. So the decoder asks its Handler for the role of each list and dict as it is begun, knowing the role
// of the container around it, and hands a container that has a role to the handler as soon as it is complete.
// The handler takes out what it wants and returns what shall stand in its place: nothing, or a token of its own,
// which later references to the same Python object yield again.
//
// Values are words of eight bytes, and memo entries words of four, because the Python pickler numbers every
// container that it writes: a file of 20 million events has 40 million memo entries.
//
// # Bounds
//
// Lengths and indexes in the input are never trusted for an allocation. Whatever the input, all tables of the decoder
// together take at most 512 MiB, besides which a string of at most 16 MiB is being read; beyond that, decoding fails. A
// process that does nothing else stays below 1 GiB with what the garbage collector leaves. The memo has at most 64 Mi
// entries. The decoder does not recurse.
package pickle
