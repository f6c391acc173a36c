package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// TestElementsOfCArrays finds calls of C with the address of an element of a C array as an argument. cgo would pass the address of an
// element of a copy, since it takes the array for a Go value.
func TestElementsOfCArrays(t *testing.T) {
	calls := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		n, copied := copiedElements(file)
		calls += n
		for _, pos := range copied {
			t.Errorf("%s: cgo passes the address of a copy; take the address in a statement of its own", files.Position(pos))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if calls == 0 {
		t.Fatal("no call of C was found")
	}
}

// TestCopiedElements tests the search itself.
func TestCopiedElements(t *testing.T) {
	const source = `package p
func f(i int) {
	C.lock(&C.devices[i])
	defer C.lock((*C.struct_device)(unsafe.Pointer(&C.devices[i].lock)))
	d := &C.devices[i]
	C.lock(d)
	C.lock(&own[i])
}`
	file, err := parser.ParseFile(token.NewFileSet(), "p.go", source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	if calls, copied := copiedElements(file); calls < 4 || len(copied) != 2 {
		t.Fatalf("%d calls of C, of which %d pass an element of a C array; want 4 or more and 2", calls, len(copied))
	}
}

// copiedElements counts the calls of C in a file, and returns the positions of those that pass the address of an element of a C array.
func copiedElements(file *ast.File) (calls int, copied []token.Pos) {
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || !ofC(call.Fun) {
			return true
		}
		calls++
		for _, argument := range call.Args {
			ast.Inspect(argument, func(n ast.Node) bool {
				if address, ok := n.(*ast.UnaryExpr); ok && address.Op == token.AND && elementOfC(address.X) {
					copied = append(copied, address.Pos())
				}
				return true
			})
		}
		return true
	})
	return calls, copied
}

// elementOfC reports whether an expression is within an element of a C variable.
func elementOfC(e ast.Expr) bool {
	for indexed := false; ; {
		switch x := e.(type) {
		case *ast.ParenExpr:
			e = x.X
		case *ast.IndexExpr:
			indexed, e = true, x.X
		case *ast.SelectorExpr:
			if ofC(x) {
				return indexed
			}
			e = x.X
		default:
			return false
		}
	}
}

// ofC reports whether an expression is a C name.
func ofC(e ast.Expr) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	c, ok := s.X.(*ast.Ident)
	return ok && c.Name == "C"
}
