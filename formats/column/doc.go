// Package column reads and writes the Parquet files below the formats of gm: flat tables of integers and strings that
// are read once, from the first row to the last, in batches of columns.
//
// It uses the encodings, footer structures and codec of parquet-go, but not its row and page types, for two reasons. A
// batch has the layout of a page, so that no value is boxed or transposed. And a file must not choose how much memory
// its reader takes, so that every count is checked before it is used. The files are ordinary Parquet, for any reader.
//
// # Bounds
//
// Reading any file takes less than [MaxMemory] bytes. Each bound of this package is checked before the memory is
// allocated, and a file that exceeds one is refused.
//
// # Errors
//
// Errors name the kind of file, the file and, if one is at fault, the row, counted from 0:
// "trace x.parquet: row 17: free of id 5, which is not live". Errors about damaged files read
// "trace x.parquet: corrupt: ...".
package column
