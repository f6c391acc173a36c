package page

import (
	_ "embed" // the page's parts
	"fmt"
	"html/template"
	"io"
	"time"

	tensors "gm/internal/trace/page"
	"gm/internal/units"
)

//go:embed assets/page.html
var pageHTML string

//go:embed assets/page.css
var pageCSS string

// The page's script, in parts.
var (
	//go:embed assets/curves.js
	curvesJS string
	//go:embed assets/view.js
	viewJS string
	//go:embed assets/tips.js
	tipsJS string
	//go:embed assets/input.js
	inputJS string
)

// Write writes the page.
func (r *Report) Write(w io.Writer) error {
	numbers, err := newData(r.Sections)
	if err != nil {
		return err
	}
	page, err := template.New("page").Funcs(template.FuncMap{"bytes": sizeText, "ns": timeText}).Parse(pageHTML)
	if err != nil {
		return fmt.Errorf("read the page's template: %w", err)
	}
	var recordings []*tensors.Recording
	for _, s := range r.Sections {
		if s.Tensors != nil {
			recordings = append(recordings, s.Tensors)
		}
	}
	tensors.Fit(recordings...)
	var views []view
	for i, s := range r.Sections {
		v := newView(s)
		if s.Tensors != nil {
			if v.Tensors, err = s.Tensors.View(fmt.Sprintf("tensors-%d", i)); err != nil {
				return err
			}
		}
		views = append(views, v)
	}
	script := tensors.Script() + "{\n" + curvesJS + viewJS + tipsJS + inputJS + "}\n" // with names of its own
	err = page.Execute(w, struct {
		*Report
		Views  []view
		Style  template.CSS
		Script template.JS
		Data   *data
	}{r, views, template.CSS(tensors.Style() + pageCSS), template.JS(script), numbers})
	if err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

func sizeText(n int64) string { return units.Bytes(n).String() }

func timeText(ns int64) string {
	switch d := time.Duration(ns); {
	case d >= 10*time.Minute:
		return d.Round(time.Second).String()
	case d >= time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d >= time.Millisecond:
		return fmt.Sprintf("%.0f ms", d.Seconds()*1e3)
	default:
		return fmt.Sprintf("%.0f µs", d.Seconds()*1e6)
	}
}
