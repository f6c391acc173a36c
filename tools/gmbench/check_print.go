package main

import (
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"gm/internal/cli"
	"gm/internal/report"
	"gm/internal/trace/ranks"
	"gm/internal/units"
)

// print prints what was compared, and writes the file of --junit.
func (cmd *checkCmd) print(c *cli.Context, all []checked) error {
	if cmd.JUnit != "" {
		if err := c.Binary(cmd.JUnit, func(w io.Writer) error { return cmd.writeJUnit(w, all) }); err != nil {
			return err
		}
	}
	switch {
	case cmd.JSON:
		return cli.WriteJSON(c.Out, all)
	case cmd.Markdown:
		return cmd.writeMarkdown(c.Out, all)
	}
	return checkTable(all).Write(c.Out)
}

func checkTable(all []checked) *report.Table {
	t := &report.Table{Titles: []string{"device", "", "before", "after", "change", "allowed", "result"}}
	ranked := len(all) > 0 && all[0].Rank != nil
	if ranked {
		t.Titles = append([]string{"rank"}, t.Titles...)
	}
	for _, r := range all {
		cells := append([]string{strconv.Itoa(int(r.Device)), r.What}, r.cells()...)
		if ranked {
			cells = append([]string{ranks.Numbers([]int64{*r.Rank})}, cells...)
		}
		t.Add(cells...)
	}
	return t
}

// cells returns what was before, what is now, the change, what is allowed, and the result.
func (r *checked) cells() []string {
	if r.Failed != nil {
		return []string{"met", units.Bytes(r.After).String(), "", r.allowed, "failed"}
	}
	result := "ok"
	if !r.OK {
		result = "too much"
	}
	return []string{units.Bytes(r.Before).String(), units.Bytes(r.After).String(), r.change(), r.allowed, result}
}

// writeMarkdown writes the table as a page of a continuous integration shows it.
func (cmd *checkCmd) writeMarkdown(w io.Writer, all []checked) error {
	var out strings.Builder
	fmt.Fprintf(&out, "### GPU memory: %s\n\n%s, before: %s\n\n", ended(all), code(cmd.After), code(cmd.Before))
	table := checkTable(all)
	row := func(cells []string) { out.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	row(table.Titles)
	out.WriteString("| --- | --- |" + strings.Repeat(" ---: |", len(table.Titles)-3) + " --- |\n")
	for _, cells := range table.Rows {
		row(cells)
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// ended says how a check ended.
func ended(all []checked) string {
	switch {
	case slices.ContainsFunc(all, func(r checked) bool { return r.Failed != nil }):
		return "a request failed"
	case tooMuch(all) != nil:
		return "grew by more than is allowed"
	}
	return "within what is allowed"
}

// code returns a name as code in Markdown.
func code(name string) string {
	return "`" + strings.ReplaceAll(report.Printable(name), "`", "'") + "`"
}

// suite is a test suite of JUnit's XML, with a case for each thing that is compared.
type suite struct {
	XMLName  xml.Name    `xml:"testsuite"`
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Cases    []suiteCase `xml:"testcase"`
}

type suiteCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Failure *suiteFailure `xml:"failure"`
	Output  string        `xml:"system-out,omitempty"`
}

type suiteFailure struct {
	Message string `xml:"message,attr"`
}

// writeJUnit writes the XML that continuous integrations read as results of tests.
func (cmd *checkCmd) writeJUnit(w io.Writer, all []checked) error {
	s := suite{Name: "gmbench check", Tests: len(all)}
	for _, r := range all {
		one := suiteCase{Class: "gmbench.check.device" + strconv.Itoa(int(r.Device)), Name: r.What}
		if r.Rank != nil {
			one.Class += fmt.Sprintf(".rank%d", *r.Rank)
		}
		if r.Failed == nil {
			one.Output = fmt.Sprintf("%s: %d bytes, %s: %d bytes, allowed: at most %d bytes", cmd.Before, r.Before, cmd.After, r.After, r.Most)
		}
		if !r.OK {
			s.Failures++
			one.Failure = &suiteFailure{r.reason()}
		}
		s.Cases = append(s.Cases, one)
	}
	text, err := xml.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s%s\n", xml.Header, text)
	return err
}
