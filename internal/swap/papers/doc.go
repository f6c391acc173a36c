// Package papers holds policies to compare with: those of papers, to reproduce what was published, and simple ones. That auto takes one of them is rare.
// Package policy has more of papers: MEMO's, Dymem's, DeepSpeed's and Belady's, by which quick begins.
package papers
