package objects

import (
	"strings"
	"testing"
)

// TestPeers has objects go to another GPU, and on to the host when a store of that GPU needs the room.
func TestPeers(t *testing.T) {
	m, path := serve(t)
	first := open(t, Options{Limit: 64 * mib, Host: 1 << 30, Server: path, Peers: []int{1}, PeerLimit: 400 * mib})
	second, err := Open(openOrdinal(t, 1), Options{Host: 1 << 30, Server: path})
	check(t, err)
	defer func() { check(t, second.Close()) }()
	until(t, "both join", func() bool { return len(m.Jobs()) == 2 })
	p := newProgram(t, first, 1)
	for range 24 {
		p.fill(1)
		p.release()
	}
	if x := first.Stats(); x.Peer != 20*16*mib || x.Host != 0 || x.Pinned > chunk {
		t.Errorf("with room on the other GPU: %+v", x)
	}
	for _, o := range p.objects {
		p.get(o)
		p.release()
	}
	free, _, err := second.dev.MemInfo()
	check(t, err)
	n := free/(16*mib) + 10
	for range n {
		_, _, err := second.Create(16*mib, 0)
		check(t, err)
	}
	// Of the 21 blocks of the other GPU that the store has by now ten go back. One of those may be the one that holds nothing.
	if x := first.Stats(); x.Peer+x.Host != 20*16*mib || x.Host < 9*16*mib || first.onPeers() > 11*16*mib {
		t.Errorf("of %d bytes of the other GPU, which needs room: %+v", first.onPeers(), x)
	}
	for _, o := range p.objects {
		p.get(o)
		p.release()
	}
	if _, err := Open(openDevice(t), Options{Host: 1 << 30, Peers: []int{7}, PeerLimit: mib}); err == nil || !strings.Contains(err.Error(), "peer 7") {
		t.Errorf("a GPU that is not there: %v", err)
	}
}

// TestPeerQuota has the server's quota bound what a store takes of another GPU.
func TestPeerQuota(t *testing.T) {
	_, path := serve(t)
	small := open(t, Options{Host: 1 << 30, Server: path, Name: "small", Peers: []int{1}, PeerLimit: 400 * mib})
	p := newProgram(t, small, 2)
	for range 6 {
		p.fill(1)
		p.release()
	}
	if n := small.onPeers(); n != 32*mib {
		t.Errorf("a store with a quota of 33 MiB has taken %d bytes of the other GPU", n)
	}
}
