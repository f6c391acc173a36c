package column

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go/format"
)

// footer is the part of a file's footer that readers use.
type footer struct {
	columns  []leaf
	rows     int64
	groups   []group
	metadata map[string]string
	end      int64 // where the data ends and the footer begins
}

// leaf is a column of the schema.
type leaf struct {
	name     string // "" if it is nested in another column
	physical format.Type
	optional bool
	repeated bool
}

// group is a row group.
type group struct {
	rows   int64
	chunks []chunk
}

// chunk is the place of a column's values in a row group.
type chunk struct {
	physical   format.Type
	codec      format.CompressionCodec
	values     int64
	size       int64 // compressed, page headers included
	data, dict int64 // offsets of the first data page and of the dictionary; 0 if there is none
	elsewhere  bool  // in another file, or encrypted
	extent     extent
}

const magic = "PAR1"

var (
	errEmpty      = errors.New("nothing in it")
	errNotParquet = errors.New("not a Parquet file")
	errPickle     = errors.New("no Parquet file but a pickle, such as a snapshot of PyTorch: only commands that take a trace read it")
	errCompressed = errors.New("no Parquet file but compressed by gzip: only commands that take a trace read it")
	errTruncated  = errors.New("corrupt: truncated, or no Parquet file at all")
)

// readFooter reads and checks the footer of a file of size bytes.
func readFooter(src io.ReaderAt, size int64) (*footer, error) {
	if size == 0 {
		return nil, errEmpty
	}
	const tail = 8 // the footer's length and the magic
	if size < int64(len(magic))+tail {
		return nil, errTruncated
	}
	var head [4]byte
	if err := readAt(src, head[:], 0); err != nil {
		return nil, err
	}
	switch {
	case string(head[:]) == magic:
	case head[0] == 0x80 && head[1] >= 2 && head[1] <= 5: // PROTO
		return nil, errPickle
	case head[0] == 0x1f && head[1] == 0x8b:
		return nil, errCompressed
	default:
		return nil, errNotParquet
	}
	var last [tail]byte
	if err := readAt(src, last[:], size-tail); err != nil {
		return nil, err
	}
	if string(last[4:]) != magic {
		return nil, errTruncated
	}
	length := int64(binary.LittleEndian.Uint32(last[:]))
	if length > MaxFooter || length > size-tail-int64(len(magic)) {
		return nil, fmt.Errorf("corrupt: footer of %d bytes in a file of %d", length, size)
	}
	data := make([]byte, length)
	f := &footer{end: size - tail - length, metadata: map[string]string{}}
	if err := readAt(src, data, f.end); err != nil {
		return nil, err
	}
	if err := f.parse(data); err != nil {
		return nil, fmt.Errorf("corrupt: footer: %w", err)
	}
	return f, nil
}

// parse decodes a FileMetaData of parquet.thrift.
func (f *footer) parse(data []byte) error {
	r := &thriftReader{data: data}
	var elements []element
	chunks := 0
	r.structure(thriftStruct, func(id int16, typ byte) {
		switch id {
		case 2:
			r.list(typ, MaxColumns, func(typ byte) { elements = append(elements, parseElement(r, typ)) })
		case 3:
			f.rows = r.integer(typ)
		case 4:
			r.list(typ, MaxChunks, func(typ byte) {
				g := parseGroup(r, typ, max(0, MaxChunks-chunks))
				chunks += max(1, len(g.chunks))
				f.groups = append(f.groups, g)
			})
		case 5:
			r.list(typ, MaxColumns, func(typ byte) { f.parsePair(r, typ) })
		default:
			r.skip(typ)
		}
	})
	if r.err != nil {
		return r.err
	}
	if err := f.flatten(elements); err != nil {
		return err
	}
	return f.check()
}

func (f *footer) parsePair(r *thriftReader, typ byte) {
	var key, value string
	r.structure(typ, func(id int16, typ byte) {
		switch id {
		case 1:
			key = string(r.bytes(typ))
		case 2:
			value = string(r.bytes(typ))
		default:
			r.skip(typ)
		}
	})
	f.metadata[key] = value
}

// element is a SchemaElement.
type element struct {
	leaf
	children int64
}

func parseElement(r *thriftReader, typ byte) element {
	var e element
	r.structure(typ, func(id int16, typ byte) {
		switch id {
		case 1:
			e.physical = format.Type(r.integer(typ))
		case 3:
			repetition := format.FieldRepetitionType(r.integer(typ))
			e.optional = repetition == format.Optional
			e.repeated = repetition == format.Repeated
		case 4:
			e.name = string(r.bytes(typ))
		case 5:
			e.children = r.integer(typ)
		default:
			r.skip(typ)
		}
	})
	return e
}

func parseGroup(r *thriftReader, typ byte, limit int) group {
	var g group
	r.structure(typ, func(id int16, typ byte) {
		switch id {
		case 1:
			r.list(typ, min(limit, MaxColumns), func(typ byte) { g.chunks = append(g.chunks, parseChunk(r, typ)) })
		case 3:
			g.rows = r.integer(typ)
		default:
			r.skip(typ)
		}
	})
	return g
}

func parseChunk(r *thriftReader, typ byte) chunk {
	var c chunk
	r.structure(typ, func(id int16, typ byte) {
		switch id {
		case 1, 8, 9: // file_path, crypto_metadata, encrypted_column_metadata
			c.elsewhere = true
			r.skip(typ)
		case 3:
			parseChunkMeta(r, typ, &c)
		default:
			r.skip(typ)
		}
	})
	return c
}

func parseChunkMeta(r *thriftReader, typ byte, c *chunk) {
	r.structure(typ, func(id int16, typ byte) {
		switch id {
		case 1:
			c.physical = format.Type(r.integer(typ))
		case 4:
			c.codec = format.CompressionCodec(r.integer(typ))
		case 5:
			c.values = r.integer(typ)
		case 7:
			c.size = r.integer(typ)
		case 9:
			c.data = r.integer(typ)
		case 11:
			c.dict = r.integer(typ)
		case 12:
			c.extent = parseExtent(r, typ)
		default:
			r.skip(typ)
		}
	})
}

// flatten lists the leaves of the schema's tree, in the order of the column chunks.
func (f *footer) flatten(elements []element) error {
	if len(elements) == 0 {
		return errors.New("no schema")
	}
	i := 1
	var walk func(children int64, nested bool) error
	walk = func(children int64, nested bool) error {
		for ; children > 0; children-- {
			if i >= len(elements) {
				return errors.New("schema: fewer columns than it says")
			}
			e := elements[i]
			i++
			if nested {
				e.name = ""
			}
			if e.children > 0 {
				if err := walk(e.children, true); err != nil {
					return err
				}
				continue
			}
			f.columns = append(f.columns, e.leaf)
		}
		return nil
	}
	return walk(elements[0].children, false)
}

// check compares the numbers of the footer with each other.
func (f *footer) check() error {
	if len(f.groups) > 0 && len(f.columns) == 0 {
		return errors.New("no columns")
	}
	total, bytes := int64(0), int64(0)
	for i, g := range f.groups {
		if g.rows < 0 || g.rows > 1<<40 {
			return fmt.Errorf("row group %d: %d rows", i, g.rows)
		}
		if len(g.chunks) != len(f.columns) {
			return fmt.Errorf("row group %d: %d columns of %d", i, len(g.chunks), len(f.columns))
		}
		total += g.rows
		for _, c := range g.chunks {
			// Overlapping chunks would let a small file have any number of rows.
			if c.size < 0 || c.size > f.end-bytes {
				return fmt.Errorf("row group %d: columns of more bytes than the file has", i)
			}
			bytes += c.size
		}
	}
	if f.rows != total {
		return fmt.Errorf("%d rows, %d in the row groups", f.rows, total)
	}
	return nil
}

// checkChunk checks the footer's entry for a chunk that is going to be read.
func (f *footer) checkChunk(g *group, c *chunk, physical format.Type) error {
	switch {
	case c.elsewhere:
		return refuse("held in another file, or encrypted")
	case c.codec != format.Zstd && c.codec != format.Uncompressed:
		return refuse("compressed by %v, only ZSTD and UNCOMPRESSED are read", c.codec)
	case c.physical != physical:
		return fmt.Errorf("chunk of %v, column of %v", c.physical, physical)
	case c.values != g.rows:
		return fmt.Errorf("%d values in %d rows", c.values, g.rows)
	}
	start := c.start()
	if start < int64(len(magic)) || start > f.end || c.size > f.end-start {
		return fmt.Errorf("%d bytes at offset %d, beyond the data's %d", c.size, start, f.end)
	}
	return nil
}

// start returns the offset of the chunk's first page.
func (c *chunk) start() int64 {
	if c.dict > 0 && c.dict < c.data {
		return c.dict
	}
	return c.data
}

// readAt fills b from offset; a source that ends early is a truncated file.
func readAt(src io.ReaderAt, b []byte, offset int64) error {
	n, err := src.ReadAt(b, offset)
	if n == len(b) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return errTruncated
	}
	return fmt.Errorf("read: %w", err)
}
