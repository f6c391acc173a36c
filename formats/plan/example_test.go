package plan_test

import (
	"bytes"
	"fmt"
	"io"
	"log"

	"gm/formats/plan"
)

// Two tensors whose lives do not overlap share the same bytes. A row of the trace stands for a point in time.
func Example() {
	var file bytes.Buffer
	w := plan.NewWriter(&file, plan.Meta{Peak: 1024, LowerBound: 1024, Solver: "by hand", Alignment: 512, Rows: 4, End: 4})
	var rows plan.Batch
	rows.Append(plan.Tensor{ID: 1, Size: 1000, Alloc: 0, Free: 1, Offset: 0})
	rows.Append(plan.Tensor{ID: 2, Size: 512, Alloc: 2, Free: 3, Offset: 512})
	if err := w.Write(&rows); err != nil {
		log.Fatal(err)
	}
	if err := w.Close(); err != nil { // writes the last rows and the metadata
		log.Fatal(err)
	}

	r, err := plan.NewReader(bytes.NewReader(file.Bytes()), int64(file.Len()), "example.parquet")
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	for {
		b, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			log.Fatal(err)
		}
		for i := range b.Len() {
			t := b.Row(i)
			fmt.Printf("tensor %d: bytes %d to %d of %d\n", t.ID, t.Offset, t.Offset+t.Size, r.Meta().Peak)
		}
	}
	// Output:
	// tensor 1: bytes 0 to 1000 of 1024
	// tensor 2: bytes 512 to 1024 of 1024
}
