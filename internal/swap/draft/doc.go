// Package draft holds what policies make schedules of: a step and its limits (Problem), the absences of tensors from the device (Trip), what it
// takes to recompute them, and how trips are found, ordered and turned into actions.
//
//	problem.go   a graph, its limits, the gaps in which tensors are not needed
//	trip.go      trips, and the actions that they compile to
//	remake.go    which tensors can be recomputed, from what, and in which time
//	page.go      demand paging by a ranking; victims.go is its heap
//	early.go     demand paging with copies that begin early
//	queue.go     when copies to the host begin
//	hoist.go     when copies to the device begin
//	clock.go     the time of the compute stream and of the lane to the host
//	buckets.go   things listed by a number
//	short.go     the error of a policy that has no schedule
package draft
