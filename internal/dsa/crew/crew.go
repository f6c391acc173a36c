// Package crew runs goroutines that work together.
package crew

import "sync"

// Crew is a group of goroutines. When one of them panics, Wait panics with the same value.
type Crew struct {
	wait   sync.WaitGroup
	once   sync.Once
	reason any
}

// Go runs f in a new goroutine.
func (c *Crew) Go(f func()) {
	c.wait.Go(func() {
		defer func() {
			if r := recover(); r != nil {
				c.once.Do(func() { c.reason = r })
			}
		}()
		f()
	})
}

// Wait waits for all goroutines.
func (c *Crew) Wait() {
	c.wait.Wait()
	if c.reason != nil {
		panic(c.reason)
	}
}
