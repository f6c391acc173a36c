package column

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Entry binds a key of a file's metadata to the variable that holds its value: a *string, *int64, *bool, *[]string or *[]int64.
// Zero values are omitted from the file.
type Entry struct {
	Key   string // without "gm."
	Value any
}

const keyPrefix = "gm."

// metadata renders the entries for the footer.
func metadata(entries []Entry) map[string]string {
	m := map[string]string{}
	for _, e := range entries {
		if text := e.render(); text != "" {
			m[keyPrefix+e.Key] = text
		}
	}
	return m
}

func (e Entry) render() string {
	switch v := e.Value.(type) {
	case *string:
		return strings.ToValidUTF8(*v, "\uFFFD") // as in columns of text
	case *int64:
		if *v != 0 {
			return strconv.FormatInt(*v, 10)
		}
	case *bool:
		if *v {
			return "true"
		}
	case *[]string:
		return renderList(*v)
	case *[]int64:
		return renderList(*v)
	default:
		panic(fmt.Sprintf("BUG: metadata of type %T", v))
	}
	return ""
}

// renderList returns a list as JSON; "" for an empty one.
func renderList[T string | int64](list []T) string {
	if len(list) == 0 {
		return ""
	}
	text, err := json.Marshal(list)
	if err != nil {
		panic(fmt.Sprintf("BUG: render a list: %v", err))
	}
	return string(text)
}

// metadata sets the entries' variables from the file.
func (r *reader) metadata(entries []Entry) error {
	for _, e := range entries {
		text, ok := r.Lookup(keyPrefix + e.Key)
		if !ok {
			continue
		}
		if err := e.parse(text); err != nil {
			return r.Wrap(fmt.Errorf("corrupt: metadata %s%s: %w", keyPrefix, e.Key, err))
		}
	}
	return nil
}

func (e Entry) parse(text string) (err error) {
	switch v := e.Value.(type) {
	case *string:
		*v = text
	case *int64:
		*v, err = strconv.ParseInt(text, 10, 64)
	case *bool:
		*v, err = strconv.ParseBool(text)
	case *[]string, *[]int64:
		err = json.Unmarshal([]byte(text), v)
	default:
		panic(fmt.Sprintf("BUG: metadata of type %T", v))
	}
	return err
}
