package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// mutant is one change.
type mutant struct {
	number   int
	kind     string
	file     string // path
	line     int
	function string
	text     string // of what is changed, on one line
}

func (m mutant) String() string {
	return fmt.Sprintf("%s:%d: %s: %s: %s", m.file, m.line, m.function, m.kind, m.text)
}

var choices = []string{"less", "equal", "logic", "branch", "least", "order"}

// mutated is a package with all of its changes in it, chosen by number.
type mutated struct {
	dir     string
	name    string            // of the package
	files   map[string][]byte // by path
	mutants []mutant
	found   int // changes, numbered from 1
}

// mutate makes the changes of the kinds named of the package in a folder.
func mutate(dir string, kinds []string) (*mutated, error) {
	m := &mutated{dir: dir, files: map[string][]byte{}}
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		if err := m.file(name, kinds); err != nil {
			return nil, fmt.Errorf("mutate %s: %w", name, err)
		}
	}
	if m.name == "" {
		return nil, fmt.Errorf("mutate %s: no Go files", dir)
	}
	return m, nil
}

func (m *mutated) file(name string, kinds []string) error {
	source, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, name, source, parser.ParseComments)
	if err != nil {
		return err
	}
	m.name = tree.Name.Name
	w := &writer{set: set, source: source, kinds: kinds, m: m, file: name}
	for _, d := range tree.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		w.function = f.Name.Name
		ast.Inspect(f.Body, w.visit)
	}
	m.files[name] = w.apply()
	return nil
}

// edit is text put into a file at an offset.
type edit struct {
	at, order int // edits at one offset by order
	text      string
}

// writer writes the changes into a file. Each change is written around the code it changes, so that changes can lie within each other.
type writer struct {
	set      *token.FileSet
	source   []byte
	kinds    []string
	m        *mutated
	file     string
	function string
	counted  map[ast.Expr]bool // conditions of loops that count
	edits    []edit
}

func (w *writer) apply() []byte {
	slices.SortStableFunc(w.edits, func(a, b edit) int {
		if a.at != b.at {
			return a.at - b.at
		}
		return a.order - b.order
	})
	var out bytes.Buffer
	last := 0
	for _, e := range w.edits {
		out.Write(w.source[last:e.at])
		out.WriteString(e.text)
		last = e.at
	}
	out.Write(w.source[last:])
	return out.Bytes()
}

func (w *writer) offset(p token.Pos) int { return w.set.Position(p).Offset }

func (w *writer) text(n ast.Node) string {
	return string(w.source[w.offset(n.Pos()):w.offset(n.End())])
}

// around puts text before and after a node. What is around an outer node of the same start or end stays outside.
func (w *writer) around(n ast.Node, before, after string) {
	start, end := w.offset(n.Pos()), w.offset(n.End())
	w.edits = append(w.edits, edit{start, -(end - start), before}, edit{end, -1<<30 + (end - start), after})
}

// wanted numbers a change of a kind, and returns false if it is not asked for.
func (w *writer) wanted(kind string, n ast.Node) (call string, ok bool) {
	if !slices.Contains(w.kinds, kind) {
		return "", false
	}
	w.m.found++
	w.m.mutants = append(w.m.mutants, mutant{w.m.found, kind, w.file, w.set.Position(n.Pos()).Line, w.function, strings.Join(strings.Fields(w.text(n)), " ")})
	return fmt.Sprintf("gmMutant(%d)", w.m.found), true
}

func (w *writer) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.ForStmt:
		if c, ok := n.Cond.(*ast.BinaryExpr); ok && n.Post != nil {
			if w.counted == nil {
				w.counted = map[ast.Expr]bool{}
			}
			w.counted[c] = true
		}
	case *ast.IfStmt:
		w.branch(n.Cond)
	case *ast.BinaryExpr:
		w.binary(n)
	case *ast.CallExpr:
		w.ordering(n)
	case *ast.BlockStmt:
		w.calls(n.List)
	case *ast.CaseClause:
		w.calls(n.Body)
	case *ast.GenDecl:
		return n.Tok != token.CONST
	}
	return true
}

// branch negates a condition, if no other change of it does the same.
func (w *writer) branch(cond ast.Expr) {
	if b, ok := cond.(*ast.BinaryExpr); ok && (b.Op == token.EQL || b.Op == token.NEQ) {
		return
	}
	if strings.Contains(w.text(cond), "err != nil") {
		return
	}
	if on, ok := w.wanted("branch", cond); ok {
		w.around(cond, "(", ") != "+on)
	}
}

var shifted = map[token.Token]string{token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">"}

func (w *writer) binary(n *ast.BinaryExpr) {
	switch n.Op {
	case token.LSS, token.LEQ, token.GTR, token.GEQ:
		if w.counted[n] {
			return
		}
		if on, ok := w.wanted("less", n); ok {
			w.around(n, fmt.Sprintf("(%s && (%s %s %s) || !%s && (", on, w.text(n.X), shifted[n.Op], w.text(n.Y), on), "))")
		}
	case token.EQL, token.NEQ:
		if isError(n.X) || isError(n.Y) {
			return
		}
		if on, ok := w.wanted("equal", n); ok {
			w.around(n, "((", fmt.Sprintf(") != %s)", on))
		}
	case token.LAND, token.LOR:
		// By De Morgan's laws: !(!a && !b) is a || b.
		if on, ok := w.wanted("logic", n); ok {
			w.around(n, "((", fmt.Sprintf(") != %s)", on))
			w.around(n.X, "((", fmt.Sprintf(") != %s)", on))
			w.around(n.Y, "((", fmt.Sprintf(") != %s)", on))
		}
	}
}

func isError(x ast.Expr) bool {
	id, ok := x.(*ast.Ident)
	return ok && id.Name == "err"
}

// ordering changes min, max and cmp.Compare.
func (w *writer) ordering(n *ast.CallExpr) {
	switch name := w.text(n.Fun); name {
	case "min", "max":
		if on, ok := w.wanted("least", n); ok {
			// What the function was called stays as a comment.
			w.around(n.Fun, map[string]string{"min": "gmMin", "max": "gmMax"}[name]+"("+on+", /*", "")
			w.edits = append(w.edits, edit{w.offset(n.Lparen) + 1, -1 << 30, "*/"})
		}
	case "cmp.Compare", "strings.Compare", "bytes.Compare":
		if on, ok := w.wanted("order", n); ok {
			w.around(n, "gmSign("+on+", ", ")")
		}
	}
}

// calls makes statements that are only a call ones that can be left out.
func (w *writer) calls(list []ast.Stmt) {
	for _, s := range list {
		e, ok := s.(*ast.ExprStmt)
		if !ok {
			continue
		}
		call, ok := e.X.(*ast.CallExpr)
		if !ok || w.text(call.Fun) == "panic" {
			continue
		}
		if on, ok := w.wanted("call", s); ok {
			w.around(s, "if !"+on+" { ", " }")
		}
	}
}
