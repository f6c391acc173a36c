package crew

import "testing"

func TestCrewPanics(t *testing.T) {
	var c Crew
	done := make(chan bool, 1)
	c.Go(func() { panic("broken") })
	c.Go(func() { done <- true })
	defer func() {
		if r := recover(); r != "broken" || len(done) != 1 {
			t.Errorf("recovered %v, %d done", r, len(done))
		}
	}()
	c.Wait()
}
