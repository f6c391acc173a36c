package blocks_test

import (
	"errors"
	"fmt"
	"log"

	"gm/internal/blocks"
	"gm/internal/cuda"
	"gm/internal/cuda/sim"
)

// Allocators are made by name, each on a simulated H200 of its own, and get the same requests.
func Example() {
	specs, err := blocks.ParseSpecs("floor,stitch,torch,native")
	if err != nil {
		log.Fatal(err)
	}
	for _, spec := range specs {
		a, err := spec.New(sim.New(80<<30, sim.H200()), blocks.Job{})
		if err != nil {
			log.Fatal(err)
		}
		var stream cuda.Stream // the default stream
		for _, mib := range []int64{300, 500, 700} {
			p, err := a.Malloc(mib<<20, stream, 0)
			if err != nil {
				log.Fatal(err)
			}
			if err := a.Free(p); err != nil {
				log.Fatal(err)
			}
		}
		s := a.Stats()
		fmt.Printf("%-7s %4d MiB in use, %4d MiB reserved\n", spec.Name, s.PeakAllocated>>20, s.PeakReserved>>20)
	}
	// Output:
	// floor    700 MiB in use,  700 MiB reserved
	// stitch   700 MiB in use,  700 MiB reserved
	// torch    700 MiB in use, 1500 MiB reserved
	// native   700 MiB in use,  700 MiB reserved
}

// A request larger than any free range is met by mapping free pieces at a new range of addresses: no memory is created or copied.
func ExampleNewStitch() {
	dev := sim.New(1<<30, sim.H200())
	s, err := blocks.NewStitch(dev, blocks.DefaultStitchConf())
	if err != nil {
		log.Fatal(err)
	}
	var p [3]cuda.Ptr
	for i := range p {
		if p[i], err = s.Malloc(256<<20, 0, 0); err != nil {
			log.Fatal(err)
		}
	}
	if err := errors.Join(s.Free(p[0]), s.Free(p[2])); err != nil { // the block between them stays in use
		log.Fatal(err)
	}
	if _, err := s.Malloc(512<<20, 0, 0); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d MiB reserved, %d request stitched\n", s.Stats().Reserved>>20, s.Stitches())
	// Output: 768 MiB reserved, 1 request stitched
}

// Settings follow the name of an allocator.
func ExampleParseSpec() {
	spec, err := blocks.ParseSpec("gmlake:frag_limit=128MiB,stitch_limit=80GiB")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(spec.Name, "can serve a program:", spec.InProcess)

	_, err = blocks.ParseSpec("gmlake:frag=128MiB")
	fmt.Println(err)
	// Output:
	// gmlake can serve a program: true
	// allocator gmlake:frag=128MiB: unknown setting "frag", expected one of frag_limit, request_limit, stitch_limit
}

// A request that cannot be met has an error that says what was in use.
func ExampleOOMError() {
	torch, err := blocks.ParseSpec("torch")
	if err != nil {
		log.Fatal(err)
	}
	a, err := torch.New(sim.New(1<<30, sim.H200()), blocks.Job{})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := a.Malloc(600<<20, 0, 0); err != nil {
		log.Fatal(err)
	}
	_, err = a.Malloc(600<<20, 0, 0)
	fmt.Println(err)
	fmt.Println(errors.Is(err, cuda.ErrOutOfMemory))
	// Output:
	// out of memory: 629145600 bytes requested, 629145600 allocated, 629145600 reserved
	// true
}
