package column

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// batchRows is the most rows of a batch that a reader returns.
const batchRows = 1 << 16

// Schema names a kind of file and the version of its columns and rules.
type Schema struct {
	Name         string // "trace"
	Major, Minor int
}

// Version returns the version as it is written in a file.
func (s Schema) Version() string { return fmt.Sprintf("%d.%d", s.Major, s.Minor) }

// Keys of the metadata that every file has.
const (
	keySchema  = "gm.schema"
	keyVersion = "gm.version"
)

// reader is the part of a Reader that does not depend on the kind of file.
type reader struct {
	schema  Schema
	name    string
	src     io.ReaderAt
	size    int64
	close   func() error
	footer  *footer
	columns []*columnReader
	absent  []*Field // columns that the file is too old for
	scratch *pageScratch
	strings *Strings
	group   int   // the next row group
	left    int64 // rows of the current row group that no batch has shown yet
	row     int64 // the first row of the batch
	after   int64 // the row after it
	err     error
}

// newReader reads the footer of a file of size bytes and checks that the file has the schema and the fields. The
// method next sets the slices of the fields. The name is for errors.
func newReader(src io.ReaderAt, size int64, name string, schema Schema, fields []Field) (*reader, error) {
	r := &reader{
		schema: schema, name: name, src: src, size: size, strings: NewStrings(),
		close: func() error { return nil },
	}
	if err := r.open(fields); err != nil {
		return nil, r.Wrap(err)
	}
	return r, nil
}

func (r *reader) open(fields []Field) (err error) {
	defer recoverCorrupt(&err)
	if r.footer, err = readFooter(r.src, r.size); err != nil {
		return err
	}
	if err := r.checkSchema(); err != nil {
		return err
	}
	for i := range fields {
		c, err := r.findColumn(&fields[i])
		switch {
		case err != nil:
			return err
		case c == nil:
			r.absent = append(r.absent, &fields[i])
		default:
			r.columns = append(r.columns, c)
		}
	}
	r.scratch, err = newPageScratch()
	return err
}

// called returns the name of a schema with an article.
func called(schema string) string {
	switch schema {
	case "tensors":
		return "a table of tensors"
	case "summary":
		return "a summary of jobs"
	}
	return "a " + schema
}

func (r *reader) checkSchema() error {
	schema, ok := r.Lookup(keySchema)
	if !ok {
		return fmt.Errorf("not written by gm: no %s in its metadata", keySchema)
	}
	if schema != r.schema.Name {
		return fmt.Errorf("this is %s, not %s", called(schema), called(r.schema.Name))
	}
	version, _ := r.Lookup(keyVersion)
	text, _, _ := strings.Cut(version, ".")
	major, err := strconv.Atoi(text)
	if err != nil || major < 1 {
		return fmt.Errorf("corrupt: version %q", version)
	}
	if major > r.schema.Major {
		return fmt.Errorf("version %s is newer than this program, which reads up to %d", version, r.schema.Major)
	}
	return nil
}

// findColumn returns nil for a column that a later version added.
func (r *reader) findColumn(field *Field) (*columnReader, error) {
	for i, leaf := range r.footer.columns {
		if leaf.name != field.name {
			continue
		}
		if leaf.repeated {
			return nil, fmt.Errorf("column %s: repeated", field.name)
		}
		if leaf.physical != field.physical() {
			return nil, fmt.Errorf("column %s: %v, should be %v", field.name, leaf.physical, field.physical())
		}
		return &columnReader{Field: field, chunk: i, optional: leaf.optional}, nil
	}
	if field.added {
		return nil, nil
	}
	return nil, fmt.Errorf("no column %s", field.name)
}

// Name returns the name of the file in errors.
func (r *reader) Name() string { return r.name }

// Rows returns the number of rows of the file.
func (r *reader) Rows() int64 { return r.footer.rows }

// Strings returns the table of the codes in columns of text. It grows as rows are read.
func (r *reader) Strings() *Strings { return r.strings }

// Lookup returns the file's metadata under key.
func (r *reader) Lookup(key string) (string, bool) {
	value, ok := r.footer.metadata[key]
	return value, ok
}

// Row returns the number, from 0, of the first row of the current batch.
func (r *reader) Row() int64 { return r.row }

// Wrap prefixes an error with the kind of file and its name.
func (r *reader) Wrap(err error) error { return fmt.Errorf("%s %s: %w", r.schema.Name, r.name, err) }

// next points the slices of the fields at the next rows, which are valid until it is called again, and returns their
// number. It returns io.EOF after the last row.
func (r *reader) next() (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	n, err := r.advance()
	if err == io.EOF {
		r.err = io.EOF
		return 0, io.EOF
	}
	if err != nil {
		return 0, r.fail(err)
	}
	return n, nil
}

// fail wraps err, which next returns from now on, and returns it.
func (r *reader) fail(err error) error {
	r.err = r.Wrap(err)
	return r.err
}

func (r *reader) advance() (n int, err error) {
	defer recoverCorrupt(&err)
	for r.left == 0 {
		if r.group == len(r.footer.groups) {
			return 0, io.EOF
		}
		if err := r.openGroup(); err != nil {
			return 0, err
		}
	}
	n = int(min(r.left, batchRows))
	for _, c := range r.columns {
		if err := c.load(r.scratch, r.strings); err != nil {
			return 0, c.explain(err)
		}
		n = min(n, c.to-c.from)
	}
	r.row = r.after
	r.after += int64(n)
	r.left -= int64(n)
	for _, c := range r.columns {
		c.rows.show(c.from, c.from+n)
		if i := c.firstUnknown(n); i >= 0 {
			return 0, fmt.Errorf("row %d: unknown %s %q", r.row+int64(i), c.name, c.unknown)
		}
		c.from += n
	}
	for _, f := range r.absent {
		f.rows.fill(f.missing, n)
		f.rows.show(0, n)
	}
	return n, nil
}

func (r *reader) openGroup() error {
	g := &r.footer.groups[r.group]
	for _, c := range r.columns {
		if err := c.open(r.src, r.footer, g); err != nil {
			return c.explain(err)
		}
	}
	r.group++
	r.left = g.rows
	return nil
}

// refusal is an error about valid Parquet that this package does not read.
type refusal struct{ error }

func refuse(text string, args ...any) error { return refusal{fmt.Errorf(text, args...)} }

// explain adds the column to an error, unless the whole file is at fault.
func (c *columnReader) explain(err error) error {
	var r refusal
	switch {
	case errors.Is(err, errTruncated):
		return err
	case errors.As(err, &r):
		return fmt.Errorf("column %s: %w", c.name, err)
	}
	return fmt.Errorf("corrupt: column %s: %w", c.name, err)
}

// Close closes the file if Open opened it.
func (r *reader) Close() error {
	r.scratch.zstd.Close()
	r.err = errors.New("read of a closed file")
	return r.close()
}

// Digest returns the SHA-256 of the whole file, in hex.
func (r *reader) Digest() (string, error) {
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(r.src, 0, r.size)); err != nil {
		return "", r.Wrap(fmt.Errorf("digest: %w", err))
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// recoverCorrupt turns a panic of a decoder into an error. Input is checked before it is decoded, but the decoders are
// another project's.
func recoverCorrupt(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("corrupt: %v", p)
	}
}
