// Package papers holds the policies of papers, and the simple ones, that others are compared with. They are here to reproduce what was published:
// a job is better off with those of package policy, which also has the papers' policies that ours are made of (MEMO, Dymem, DeepSpeed, Belady).
package papers
