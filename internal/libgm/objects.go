package main

// #include "libgm.h"
import "C"

import (
	"errors"
	"fmt"
	"math"
	"sync"

	"golang.org/x/sys/unix"

	"gm/internal/cuda"
	"gm/internal/swap/objects"
	"gm/internal/swap/server/wire"
)

// stores is the stores of objects that this process has open.
type stores struct {
	mu   sync.RWMutex
	open map[int64]*objects.Store
	last int64
}

var objectStores = stores{open: map[int64]*objects.Store{}}

func (s *stores) add(x *objects.Store) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	s.open[s.last] = x
	return s.last
}

func (s *stores) find(id int64) (*objects.Store, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if x := s.open[id]; x != nil {
		return x, nil
	}
	return nil, fmt.Errorf("%d is no store that is open", id)
}

func (s *stores) close(id int64) error {
	x, err := s.find(id)
	if err != nil {
		return err
	}
	s.mu.Lock()
	delete(s.open, id)
	s.mu.Unlock()
	return x.Close()
}

// openStore makes a store, with a device of its own: what the allocator has open is behind another lock.
func (p *process) openStore(ordinal int, c *C.struct_gm_store_options) (*objects.Store, error) {
	library, settings, err := p.loaded()
	if err != nil {
		return nil, err
	}
	o, err := optionsOf(c, &settings)
	if err != nil {
		return nil, err
	}
	dev, err := visitor{library, o.Server, o.Name}.open(ordinal)
	if err != nil {
		return nil, err
	}
	store, err := objects.Open(dev, *o)
	if err != nil {
		return nil, errors.Join(err, dev.Close())
	}
	return store, nil
}

// optionsOf reads the options of a store.
func optionsOf(c *C.struct_gm_store_options, settings *settings) (*objects.Options, error) {
	policy, err := objects.ParsePolicy(C.GoString(c.policy))
	if err != nil {
		return nil, err
	}
	if c.limit > math.MaxInt64 || c.host > math.MaxInt64 {
		return nil, errors.New("a limit that no memory has")
	}
	peers, wrong := ordinals(C.GoString(c.peers))
	if wrong != "" {
		return nil, fmt.Errorf("peers: %q is no number of a device", wrong)
	}
	o := &objects.Options{
		Limit: int64(c.limit), Host: int64(c.host), Folder: C.GoString(c.folder), Policy: policy, Name: C.GoString(c.name),
		Server: C.GoString(c.server), Peers: peers, PeerLimit: int64(min(c.peer_limit, math.MaxInt64)),
	}
	if c.server == nil {
		o.Server = settings.server
		if o.Server == "" {
			o.Server = wire.Path()
		}
	}
	if c.name == nil {
		o.Name = settings.name
	}
	if o.Host == 0 {
		if o.Host, err = quarter(); err != nil {
			return nil, err
		}
	}
	if f, user := c.evicted, c.user; f != nil {
		o.Evicted = func(id objects.ID) { C.gm_tell_evicted(f, user, C.int64_t(id)) }
	}
	if bool(C.gm_find_gate()) { // what the store does for others goes on while this process sleeps
		o.Thread = func() { C.gm_pass_gate(true) }
	}
	return o, nil
}

// quarter returns a quarter of the machine's memory, in bytes.
func quarter() (int64, error) {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 0, fmt.Errorf("ask for the machine's memory: %w", err)
	}
	return int64(info.Totalram) * int64(info.Unit) / 4, nil
}

// withStore calls f for the store of a number.
func withStore(id C.int64_t, f func(s *objects.Store) error) C.int {
	return keyResult(func() error {
		s, err := objectStores.find(int64(id))
		if err != nil {
			return err
		}
		return f(s)
	})
}

//export go_store_open
func go_store_open(device C.int, options *C.struct_gm_store_options) (id C.int64_t) {
	keyResult(func() error {
		store, err := self.openStore(int(device), options)
		if err == nil {
			id = C.int64_t(objectStores.add(store))
		}
		return err
	})
	return id
}

//export go_store_close
func go_store_close(id C.int64_t) C.int {
	return keyResult(func() error { return objectStores.close(int64(id)) })
}

//export go_store_create
func go_store_create(store C.int64_t, size C.size_t, stream C.uintptr_t) (id C.int64_t, p C.uint64_t) {
	withStore(store, func(s *objects.Store) error {
		object, at, err := s.Create(int64(min(size, math.MaxInt64)), cuda.Stream(stream))
		id, p = C.int64_t(object), C.uint64_t(at)
		return err
	})
	return id, p
}

//export go_store_get
func go_store_get(store, object C.int64_t, write C.int, stream C.uintptr_t) (p C.uint64_t) {
	withStore(store, func(s *objects.Store) error {
		access := objects.Write
		if write == 0 {
			access = objects.Read
		}
		at, err := s.Get(objects.ID(object), access, cuda.Stream(stream))
		p = C.uint64_t(at)
		return err
	})
	return p
}

//export go_store_put
func go_store_put(store, object, next C.int64_t, stream C.uintptr_t) C.int {
	return withStore(store, func(s *objects.Store) error { return s.Put(objects.ID(object), int64(next), cuda.Stream(stream)) })
}

//export go_store_free
func go_store_free(store, object C.int64_t, stream C.uintptr_t) C.int {
	return withStore(store, func(s *objects.Store) error { return s.Free(objects.ID(object), cuda.Stream(stream)) })
}

//export go_store_get_stats
func go_store_get_stats(store C.int64_t, stats *C.struct_gm_store_stats) C.int {
	return withStore(store, func(s *objects.Store) error {
		x := s.Stats()
		*stats = C.struct_gm_store_stats{
			objects: C.int64_t(x.Objects), card_bytes: C.int64_t(x.Card), unused_bytes: C.int64_t(x.Unused),
			host_bytes: C.int64_t(x.Host), pinned_bytes: C.int64_t(x.Pinned), file_bytes: C.int64_t(x.File),
			gets: C.int64_t(x.Gets), misses: C.int64_t(x.Misses),
			evictions: C.int64_t(x.Evictions), clean: C.int64_t(x.Clean), evicted_bytes: C.int64_t(x.EvictedBytes),
			fetches: C.int64_t(x.Fetches), ahead: C.int64_t(x.Ahead), fetched_bytes: C.int64_t(x.FetchedBytes),
			peer_bytes: C.int64_t(x.Peer), evicting_ns: C.int64_t(x.Evicting), spilled_bytes: C.int64_t(x.Spilled), restored_bytes: C.int64_t(x.Restored),
		}
		return nil
	})
}
