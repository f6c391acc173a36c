package trace_test

import (
	"bytes"
	"fmt"
	"log"

	"gm/formats/trace"
)

// A trace is written and read in batches of rows. Texts are stored once: a row holds the code of its text.
func Example() {
	var file bytes.Buffer
	w := trace.NewWriter(&file, trace.Meta{Devices: []string{"NVIDIA H200"}, Source: "example"})
	tag := w.Strings().Code("activations")
	var rows trace.Batch
	rows.Append(trace.Event{TimeNS: 1000, Op: trace.OpAlloc, ID: 1, Size: 4096, Addr: 0x7f0000000000, Tag: tag})
	rows.Append(trace.Event{TimeNS: 2000, Op: trace.OpFree, ID: 1, Size: 4096, Addr: 0x7f0000000000})
	if err := w.Write(&rows); err != nil {
		log.Fatal(err)
	}
	if err := w.Close(); err != nil { // writes the last rows and the metadata
		log.Fatal(err)
	}

	r, err := trace.NewReader(bytes.NewReader(file.Bytes()), int64(file.Len()), "example.parquet")
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	fmt.Println(r.Rows(), "rows on", r.Meta().Devices[0])
	err = trace.Each(r, func(row int64, e *trace.Event) error {
		_, err := fmt.Println(row, e.TimeNS, e.Op, e.ID, e.Size, r.Strings().Text(e.Tag))
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// 2 rows on NVIDIA H200
	// 0 1000 alloc 1 4096 activations
	// 1 2000 free 1 4096
}

// The rules of a trace are checked when it is written and when it is read.
func ExampleValidator() {
	var rows trace.Batch
	rows.Append(trace.Event{TimeNS: 1000, Op: trace.OpFree, ID: 1})
	w := trace.NewWriter(&bytes.Buffer{}, trace.Meta{})
	fmt.Println(w.Write(&rows))
	// Output:
	// write trace: row 0: free of id 1, which is not live: it was never allocated
}
