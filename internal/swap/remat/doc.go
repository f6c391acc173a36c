// Package remat makes schedules that recompute, and copy nothing: what is dropped, until when, and what it is recomputed from.
//
//	plan.go      the schedule of a step in a given amount of memory
//	state.go     a schedule as what is held between the uses of each tensor, and what follows from that
//	undo.go      changes of it, which can be undone
//	drop.go      what is dropped where memory is short: the cheapest first
//	search.go    holding some of it again, and dropping others
//	online.go    schedules made as the step goes, where there is no other
//	actions.go   the actions of a schedule
package remat
