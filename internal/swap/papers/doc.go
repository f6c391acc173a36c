// Package papers holds policies that are only compared with: those of papers, to reproduce what was published, and simple ones. For a job the
// policies of package policy are better. That package also has the papers' policies that auto tries: MEMO's, Dymem's, DeepSpeed's and Belady's.
package papers
