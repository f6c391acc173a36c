// Package store reads and writes the graphs and schedules of package swap as the Parquet files of formats/graph and formats/schedule.
//
// # Bounds
//
// Whatever a file says, a graph that was read takes less than 512 MiB beside its names, and a schedule less than 256 MiB, both on top of
// what the readers of formats take. That is for the most rows that a file may have; what is taken grows with the rows that are really there.
//
// # Errors
//
// Errors name the kind of file, the file, and the row where there is one, counted from 0: "graph x.parquet: row 17: unknown type "convolution"".
package store
