package column

import (
	"fmt"
	"io"
)

// Kind returns the name of the schema that a file of size bytes follows, such as "trace".
func Kind(src io.ReaderAt, size int64) (kind string, err error) {
	defer recoverCorrupt(&err)
	f, err := readFooter(src, size)
	if err != nil {
		return "", err
	}
	kind, ok := f.metadata[keySchema]
	if !ok {
		return "", fmt.Errorf("not written by gm: no %s in its metadata", keySchema)
	}
	return kind, nil
}
