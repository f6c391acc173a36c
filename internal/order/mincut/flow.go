package mincut

import "math"

const infinite = math.MaxInt64 / 4

// network is a flow network, solved by Dinic's algorithm. Edge i and its reverse i^1 stand together.
type network struct {
	head  []int32 // by node: its first edge, -1 for none
	next  []int32 // by edge
	to    []int32
	room  []int64
	level []int32
	at    []int32 // by node: the edge that is tried next
	queue []int32
}

func (n *network) reset(nodes int) {
	n.head, n.next, n.to, n.room = n.head[:0], n.next[:0], n.to[:0], n.room[:0]
	for range nodes {
		n.grow()
	}
}

func (n *network) grow() int32 {
	n.head = append(n.head, -1)
	return int32(len(n.head) - 1)
}

func (n *network) add(from, to int32, room int64) {
	n.edge(from, to, room)
	n.edge(to, from, 0)
}

func (n *network) edge(from, to int32, room int64) {
	n.next = append(n.next, n.head[from])
	n.to = append(n.to, to)
	n.room = append(n.room, room)
	n.head[from] = int32(len(n.to) - 1)
}

// flow returns the greatest flow from source to sink.
func (n *network) flow() int64 {
	var sum int64
	for n.layer() {
		n.at = append(n.at[:0], n.head...)
		for {
			pushed := n.push(source, infinite)
			if pushed == 0 {
				break
			}
			sum += pushed
		}
	}
	return sum
}

// layer numbers the nodes by their distance from the source, and returns whether the sink has one.
func (n *network) layer() bool {
	n.level = append(n.level[:0], n.head...)
	for i := range n.level {
		n.level[i] = -1
	}
	n.level[source] = 0
	n.queue = append(n.queue[:0], source)
	for i := 0; i < len(n.queue); i++ {
		node := n.queue[i]
		for e := n.head[node]; e >= 0; e = n.next[e] {
			if to := n.to[e]; n.room[e] > 0 && n.level[to] < 0 {
				n.level[to] = n.level[node] + 1
				n.queue = append(n.queue, to)
			}
		}
	}
	return n.level[sink] >= 0
}

// push sends flow along one path of ascending levels.
func (n *network) push(node int32, most int64) int64 {
	if node == sink {
		return most
	}
	for ; n.at[node] >= 0; n.at[node] = n.next[n.at[node]] {
		e := n.at[node]
		to := n.to[e]
		if n.room[e] == 0 || n.level[to] != n.level[node]+1 {
			continue
		}
		if pushed := n.push(to, min(most, n.room[e])); pushed > 0 {
			n.room[e] -= pushed
			n.room[e^1] += pushed
			return pushed
		}
	}
	return 0
}

// reached reports whether a node is on the side of the source of the cut that is nearest to it.
func (n *network) reached(node int32) bool { return n.level[node] >= 0 }
