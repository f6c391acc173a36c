package main

import (
	"bufio"
	"fmt"
	"io"
	"os"

	"gm/formats/trace"
)

func dump(name string) {
	r, err := trace.Open(name)
	if err != nil {
		panic(err)
	}
	o := bufio.NewWriter(os.Stdout)
	defer o.Flush()
	for {
		b, err := r.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			panic(err)
		}
		for i := range b.Len() {
			e := b.Row(i)
			fmt.Fprintf(o, "%d|%v|%d|%d|%d|%d|%d|%s|%s|%s\n", e.TimeNS, e.Op, e.ID, e.Size, e.Addr, e.Device, e.Stream, r.Strings().Text(e.Pool), r.Strings().Text(e.Stack), r.Strings().Text(e.Tag))
		}
	}
}
