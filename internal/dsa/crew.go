package dsa

import "sync"

// crew is goroutines that work together. When one of them panics, Wait does.
type crew struct {
	wait   sync.WaitGroup
	once   sync.Once
	reason any
}

// Go has f run in a goroutine of its own.
func (c *crew) Go(f func()) {
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
func (c *crew) Wait() {
	c.wait.Wait()
	if c.reason != nil {
		panic(c.reason)
	}
}
