// Package blocks holds gm's GPU memory allocators and the data structures that they share. Each allocator is written once, against
// cuda.Device, and runs unchanged on a simulated device, on a fake driver and on a GPU.
//
// An [Allocator] is made by its constructor, or by name: [ParseSpec] reads "stitch" or "stitch:slack=0.1", and [Spec.New] makes the allocator
// on a device. An allocator that a program can run on is a [Resident].
//
// The interface and the registry:
//
//	allocator.go                      Allocator, its statistics, its error for a request that cannot be met
//	registry.go                       the list of allocators, and how they are named with settings (settings.go)
//	holdings.go                       what an allocator has taken from the device, for accounts of lost memory
//	segments.go                       the same as a PyTorch snapshot shows it
//
// stitch, gm's live allocator:
//
//	stitch.go                         Stitch: the life of a request
//	stitch_heap.go                    the memory of one stream: freed blocks by size, and the addresses that a size had before
//	stitch_choose.go                  decides: new memory, or free pieces mapped together, and which pieces
//	stitch_map.go                     carries the decision out: creates pieces, maps them
//	stitch_pieces.go                  physical memory, and what of it is free
//	stitch_idle.go                    which pieces are wholly free
//	stitch_regions.go                 reserved ranges of addresses
//	stitch_cross_streams.go           passes free pieces from one stream to another, behind an event
//	stitch_trim.go                    undoes mappings, releases memory
//	stitch_segments.go                reports its memory
//
// cyclic, which is stitch with a plan:
//
//	cyclic.go                         Cyclic: follows a plan of the iteration that a job repeats
//	cycle.go                          the plan, and its check
//	history.go                        finds the iteration in a job's requests
//	grams.go                          finds the position in the plan from the last requests
//
// PyTorch's caching allocator, torch and expandable:
//
//	torch.go                          Torch: searches, splits and joins blocks
//	torch_grow.go                     takes segments, and releases cached ones when the device is full
//	torch_expandable.go               expandable segments
//	torch_pools.go                    private pools of CUDA graphs
//	torch_exchange.go                 brings a private pool back to an earlier state
//	torch_outside.go                  segments for small requests that are served elsewhere, as libgm.so does in C
//	torch_restore.go                  starts from memory that was in use before a recording
//
// The allocators that these are compared with:
//
//	floor.go                          the lower bound for any allocator: the bytes in use
//	planned.go                        offsets from a plan of all requests
//	native.go                         cudaMalloc and cudaFree for every request
//	paper_gmlake*.go                  GMLake as its paper describes it; paper_gmlake_code.go as its published code does it
//
// What several of them are built from:
//
//	store.go, freeset.go, ranges.go   blocks by index, free blocks by size, free addresses
//	lender.go                         keeps a freed block until the streams that borrowed it are done
//	besidetorch.go                    leaves small requests to PyTorch's allocator
//	chunks.go                         physical memory of uniform size, for GMLake
package blocks
