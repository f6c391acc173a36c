// Package column reads and writes the Parquet files that the formats of gm are made of: flat tables of integers
// and strings that are read once, from the first row to the last, in batches of columns.
//
// It does not go through the row and page types of parquet-go, but through the encodings, the footer structures and
// the codec underneath them, for two reasons. A batch already is what a page holds, so that nothing is boxed or
// transposed; and whoever reads a file must not let that file choose how much memory is taken, which needs every
// count to be checked before it is believed. What is written is ordinary Parquet, for any reader of it.
//
// # Bounds
//
// Whatever a file says, reading it holds less than [MaxMemory] bytes. Each bound below is checked before the memory
// is taken, and a file beyond one is refused.
//
// # Errors
//
// Errors name the kind of file, the file, and the row where there is one, counted from 0:
// "trace x.parquet: row 17: free of id 5, which is not live". What no writer would have produced reads
// "trace x.parquet: corrupt: ...".
package column
