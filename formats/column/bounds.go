package column

// Bounds of a file. The writer stays well below them, and so do other writers of Parquet by default.
const (
	MaxFooter  = 16 << 20  // bytes of a footer
	MaxColumns = 1 << 10   // columns of a file, unknown ones included
	MaxChunks  = 1 << 19   // row groups times columns: some 40 Gi rows as written here
	MaxPage    = 16 << 20  // bytes of a page, compressed or not
	MaxValues  = 1 << 20   // rows of a page
	MaxEntries = 1 << 21   // values of a dictionary
	MaxText    = 1 << 20   // bytes of one string
	MaxStrings = 1 << 21   // distinct strings of a file
	MaxTexts   = 256 << 20 // bytes of all its distinct strings
)

// MaxMemory bounds the memory of a reader of this package, in bytes, for any file: the footer in both forms (100 MiB);
// one page, compressed, decompressed and decoded (60 MiB); a page's rows in each of at most 17 columns (100 MiB) and
// their dictionaries (280 MiB); and the distinct strings with their index (450 MiB). The state that the rules of a
// format keep about rows is not included.
const MaxMemory = 1 << 30

// Sizes of the parts that the writer makes.
const (
	pageRows    = 1 << 17 // rows of a page, in every column, so that pages start at the same rows
	groupRows   = 1 << 20 // rows of a row group
	dictEntries = 1 << 17 // integers in a dictionary above which further pages are written plain
	dictTexts   = 8 << 20 // bytes of strings in a dictionary above which the row group ends
)

// headerWindow is how many bytes are read at the start of a page: the most that its header may have.
const headerWindow = 64 << 10
