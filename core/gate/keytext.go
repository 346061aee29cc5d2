package gate

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// textOf returns a stored value as the text of a key: of strings, integers and fmt.Stringers. Everything else is no key,
// since its text could change or be an address in memory.
func textOf(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case int:
		return strconv.Itoa(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case fmt.Stringer:
		if rv := reflect.ValueOf(v); rv.Kind() == reflect.Pointer && rv.IsNil() {
			return ""
		}
		return v.String()
	}
	switch rv := reflect.ValueOf(v); rv.Kind() { // named types, as type TenantID string
	case reflect.String:
		return rv.String()
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return strconv.FormatInt(rv.Int(), 10)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return strconv.FormatUint(rv.Uint(), 10)
	}
	return ""
}

// cookie returns the value of the first cookie called name, without quotes around it (RFC 6265, section 4.2.1).
func cookie(r Request, name string) string {
	for _, line := range r.HeaderValues("Cookie") {
		for line != "" {
			var pair string
			pair, line, _ = strings.Cut(line, ";")
			key, value, ok := strings.Cut(strings.TrimSpace(pair), "=")
			if ok && key == name {
				if len(value) > 1 && value[0] == '"' && value[len(value)-1] == '"' {
					value = value[1 : len(value)-1]
				}
				return value
			}
		}
	}
	return ""
}
