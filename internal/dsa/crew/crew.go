// Package crew runs goroutines that work together.
package crew

import "sync"

// Crew is goroutines that work together. When one of them panics, Wait does.
type Crew struct {
	wait   sync.WaitGroup
	once   sync.Once
	reason any
}

// Go has f run in a goroutine of its own.
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

// Wait waits until all are done.
func (c *Crew) Wait() {
	c.wait.Wait()
	if c.reason != nil {
		panic(c.reason)
	}
}
