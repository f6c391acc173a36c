package gtbm

// Trials returns how often steps fail in a main space that is sized by trial and error (section 3.3.3): what the first step needs and beta bytes.
// A step that needs more fails, is given beta bytes more, and is tried again. Needs are the bytes that the steps need, in their order; beta is
// over 0.
func Trials(needs []int64, beta int64) (failures int) {
	if len(needs) == 0 {
		return 0
	}
	space := needs[0] + beta
	for _, need := range needs {
		for ; need > space; space += beta {
			failures++
		}
	}
	return failures
}
