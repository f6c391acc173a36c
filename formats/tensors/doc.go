// Package tensors reads and writes tables of the allocations of a trace as Parquet: one row an allocation, with its lifetime and what it
// is for. gm's tools write them for others, such as DuckDB, pandas and polars. formats/README.md documents the format itself.
package tensors
