package report

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gm/formats/trace"
)

// between separates two frames, the inner one first.
const between = " < "

// plumbing are the files, by the ends of their paths, through which PyTorch calls one module from another. They do not tell who
// allocates.
var plumbing = [...]string{
	"torch/nn/modules/module.py", "torch/utils/_contextlib.py", "torch/_dynamo/eval_frame.py", "torch/_dynamo/external_utils.py",
}

// Stack shortens a folded stack, "outermost;...;innermost" with frames such as "name (file:line)", to width characters. It has as many
// of the innermost frames as fit, innermost first, and ends with the innermost frame outside of installed packages. If there are
// Python frames, those of native code and calls from module to module are left out.
func Stack(folded string, width int) string {
	if folded == "" {
		return "(no stack)"
	}
	var short []string
	own := -1
	for _, f := range telling(parseFrames(folded)) {
		text := f.short()
		if n := len(short); n > 0 && short[n-1] == text {
			continue
		}
		if own < 0 && f.own() {
			own = len(short)
		}
		short = append(short, text)
	}
	return fitFrames(short, own, width)
}

// frame is one call of a stack.
type frame struct {
	name, file, line string // file and line are "" for native code
}

// parseFrames returns the frames of a folded stack, innermost first.
func parseFrames(folded string) []frame {
	texts := strings.Split(folded, ";")
	frames := make([]frame, 0, len(texts))
	for i := len(texts) - 1; i >= 0; i-- {
		frames = append(frames, parseFrame(texts[i]))
	}
	return frames
}

// parseFrame parses a frame. It leaves out files that are not Python.
func parseFrame(text string) frame {
	f := trace.ParseFrame(text)
	if !strings.HasSuffix(f.File, ".py") && !strings.HasPrefix(f.File, "<") {
		return frame{name: f.Name}
	}
	return frame{f.Name, f.File, strconv.FormatInt(f.Line, 10)}
}

// telling leaves out uninformative frames, unless there are no others.
func telling(frames []frame) []frame {
	for _, skip := range []func(frame) bool{frame.native, frame.plumbing} {
		var rest []frame
		for _, f := range frames {
			if !skip(f) {
				rest = append(rest, f)
			}
		}
		if len(rest) > 0 {
			frames = rest
		}
	}
	return frames
}

// Plumbing reports whether a frame "name (file:line)" only leads from one module of PyTorch to another, or into its allocator.
func Plumbing(text string) bool { return parseFrame(text).plumbing() }

func (f frame) native() bool { return f.file == "" }

func (f frame) plumbing() bool {
	for _, file := range plumbing {
		if strings.HasSuffix(f.file, file) {
			return true
		}
	}
	return strings.HasPrefix(f.name, "c10::cuda::") || strings.HasPrefix(f.name, "_PyEval_")
}

// own reports whether a frame's file is outside of installed packages and Python's library.
func (f frame) own() bool {
	return f.file != "" && !strings.Contains(f.file, "-packages/") && !strings.Contains(f.file, "/lib/python") && !strings.HasPrefix(f.file, "<")
}

// evaluation is what autograd puts before the name of the operator that it runs.
const evaluation = "autograd::engine::evaluate_function: "

// short returns a frame as "file.py:12 name", or, for native code, as its name without arguments and without what autograd puts
// before it.
func (f frame) short() string {
	if f.native() {
		name, _, _ := strings.Cut(f.name, "(")
		return strings.TrimPrefix(name, evaluation)
	}
	text := path.Base(f.file) + ":" + f.line
	if f.name == "<module>" {
		return text
	}
	return text + " " + f.name
}

// fitFrames joins the first frames, as many as fit into width characters, and the one with index own, -1 for none.
func fitFrames(frames []string, own, width int) string {
	line := joinFrames(frames, 1, own)
	for n := 2; n <= len(frames); n++ {
		next := joinFrames(frames, n, own)
		if utf8.RuneCountInString(next) > width {
			break
		}
		line = next
	}
	return cutTo(line, width)
}

// joinFrames joins the first n frames and the one with index own, with dots for those between.
func joinFrames(frames []string, n, own int) string {
	shown := slices.Clone(frames[:n])
	if own > n {
		shown = append(shown, "…")
	}
	if own >= n {
		shown = append(shown, frames[own])
	}
	return strings.Join(shown, between)
}
