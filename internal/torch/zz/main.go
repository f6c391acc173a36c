package main

import (
	"compress/gzip"
	"fmt"
	"os"
	"runtime/pprof"
	"time"

	"gm/formats/trace"
	"gm/internal/torch"
)

func main() {
	if p := os.Getenv("PROF"); p != "" {
		f, _ := os.Create(p)
		pprof.StartCPUProfile(f)
		defer pprof.StopCPUProfile()
	}
	if os.Args[1] == "-d" {
		dump(os.Args[2])
		return
	}
	t := time.Now()
	f, _ := os.Open(os.Args[1])
	z, err := gzip.NewReader(f)
	if err != nil {
		panic(err)
	}
	out, _ := os.Create(os.Args[2])
	w := trace.NewWriter(out, trace.Meta{})
	if err := torch.Import(z, os.Args[1], w, func(s string) { fmt.Println("warning:", s) }); err != nil {
		fmt.Println("error:", err)
		return
	}
	fmt.Println(w.Close(), time.Since(t), *w.Meta())
}
