package page

import (
	_ "embed" // the page's parts
	"fmt"
	"html/template"
	"image/color"
	"io"
	"strings"

	"gm/internal/report"
)

// Page is a page about one recording, or two that are compared.
type Page struct {
	Title   string
	Version string // of gm
	A, B    *Recording
}

//go:embed assets/page.html
var pageHTML string

//go:embed assets/viewer.html
var viewerHTML string

//go:embed assets/base.css
var baseCSS string

//go:embed assets/viewer.css
var viewerCSS string

// The script, in parts.
var (
	//go:embed assets/numbers.js
	numbersJS string
	//go:embed assets/tensors.js
	tensorsJS string
	//go:embed assets/sweep.js
	sweepJS string
	//go:embed assets/colors.js
	colorsJS string
	//go:embed assets/plot.js
	plotJS string
	//go:embed assets/stretch.js
	stretchJS string
	//go:embed assets/viewer.js
	viewerJS string
	//go:embed assets/gestures.js
	gesturesJS string
	//go:embed assets/words.js
	wordsJS string
	//go:embed assets/flame.js
	flameJS string
	//go:embed assets/beside.js
	besideJS string
	//go:embed assets/compare.js
	compareJS string
	//go:embed assets/start.js
	startJS string
)

// Style returns the style sheet of pages with views. Its colours of areas are those of pictures; in the dark they are a little lighter.
func Style() string {
	var colors strings.Builder
	add := func(name string, c color.NRGBA) { fmt.Fprintf(&colors, "--%s: #%02x%02x%02x; ", name, c.R, c.G, c.B) }
	for i := range report.AreaColors {
		add(fmt.Sprintf("c%d", i), report.AreaColor(i))
	}
	add("rest", report.RestColor)
	return ":root { " + colors.String() + "}\n" + baseCSS + viewerCSS
}

// Script returns the script of pages with views. It begins with what other scripts of such a page may use, as numbers.js describes it.
func Script() string {
	return numbersJS + tensorsJS + sweepJS + colorsJS + plotJS + stretchJS + viewerJS + gesturesJS + wordsJS + flameJS + besideJS + compareJS + startJS
}

// View returns the element of a page that shows a recording. The page has [Style] and [Script], no other element with this id, and all its
// recordings went through [Fit].
func (r *Recording) View(id string) (template.HTML, error) {
	v, err := r.view(id)
	if err != nil {
		return "", err
	}
	t, err := template.New("viewer").Parse(viewerHTML)
	if err != nil {
		return "", fmt.Errorf("read the template of the view: %w", err)
	}
	var out strings.Builder
	if err := t.Execute(&out, v); err != nil {
		return "", fmt.Errorf("write the view of %s: %w", r.Name, err)
	}
	return template.HTML(out.String()), nil
}

// Write writes the page.
func (p *Page) Write(w io.Writer) error {
	type section struct {
		*Recording
		Letter, Summary string
		View            template.HTML
	}
	all := []*Recording{p.A}
	if p.B != nil {
		all = append(all, p.B)
	}
	Fit(all...)
	if p.B != nil {
		match(p.A, p.B)
	}
	var views []section
	for i, r := range all {
		view, err := r.View(fmt.Sprintf("tensors-%d", i))
		if err != nil {
			return err
		}
		s := section{Recording: r, Summary: r.summary(), View: view}
		if p.B != nil {
			s.Letter = "AB"[i : i+1]
		}
		views = append(views, s)
	}
	t, err := template.New("page").Parse(pageHTML)
	if err != nil {
		return fmt.Errorf("read the page's template: %w", err)
	}
	err = t.Execute(w, struct {
		*Page
		Views  []section
		Style  template.CSS
		Script template.JS
	}{p, views, template.CSS(Style()), template.JS(Script())})
	if err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}
