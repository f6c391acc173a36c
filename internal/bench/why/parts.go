package why

// kind is a cause of lost bytes. Each byte that is reserved and was not requested has exactly one cause, the first that applies.
type kind int

const (
	rounding kind = iota
	tails
	pending
	private
	stranded
	whole
	growth
	small
	large
	gaps
	kinds
)

var about = [kinds]Part{
	rounding: {Name: "rounding", About: "in blocks in use: the rounded size of the request minus the request"},
	tails:    {Name: "split tails", About: "in blocks in use: what lies after the rounded size and is not split off"},
	pending:  {Name: "pending record_stream", About: "blocks that were freed and wait for another stream"},
	private:  {Name: "private pools", About: "free memory in private pools, such as those of CUDA graphs"},
	stranded: {Name: "stranded by stream", About: "free memory of streams other than that of the request at the peak"},
	whole:    {Name: "free segments", About: "segments in which nothing is in use: empty_cache() would release them"},
	growth:   {Name: "unused growth", About: "pages mapped behind the last block, and the rest of the segment that was taken at the peak"},
	small:    {Name: "small fragments", About: "free memory between blocks of up to 1 MiB"},
	large:    {Name: "large fragments", About: "free memory between larger blocks"},
	gaps:     {Name: "gaps of the plan", About: "memory of the plan's arenas in which nothing lies at the peak"},
}

// parts is bytes by kind.
type parts [kinds]int64

// list returns all parts, in the order of their kinds.
func (p *parts) list() []Part {
	all := make([]Part, kinds)
	for k, bytes := range p {
		all[k] = about[k]
		all[k].Bytes = bytes
	}
	return all
}
