// Package jsonvalue says which value of a JSON document is of another kind than expected.
package jsonvalue

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// Explain returns an error of package json about the kind of a value in words of JSON, and other errors unchanged.
func Explain(err error) error {
	mismatch, ok := err.(*json.UnmarshalTypeError)
	if !ok {
		return err
	}
	text := fmt.Sprintf("%s, expected %s", found(mismatch.Value), expected(mismatch.Type))
	if mismatch.Field != "" {
		return fmt.Errorf("%s: %s", mismatch.Field, text)
	}
	return fmt.Errorf("%s", text)
}

// found names a value as package json describes it: by its kind, or "number" and its text.
func found(value string) string {
	switch value {
	case "string":
		return "a text"
	case "array":
		return "a list"
	case "object":
		return "an object"
	case "bool":
		return "true or false"
	case "number":
		return "a number"
	}
	return strings.TrimPrefix(value, "number ")
}

// expected names the values that a type takes.
func expected(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return fmt.Sprintf("a whole number of %d bits", t.Bits())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return fmt.Sprintf("a whole number from 0 on, of %d bits", t.Bits())
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "a list"
	}
	return "an object"
}
