package snapshot

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gm/internal/torch/allocconf"
	"gm/internal/torch/pickle"
)

// maxConf is how much of the variable is read, in bytes.
const maxConf = 16 << 10

// setting is one key:value of PYTORCH_CUDA_ALLOC_CONF.
type setting struct{ key, value string }

// allocConf returns the allocator's settings in the syntax of PYTORCH_CUDA_ALLOC_CONF: the variable as it was, with
// what the allocator made of it where the snapshot says so. Defaults are left out.
func allocConf(dec *pickle.Decoder, v pickle.Value) string {
	values := map[string]pickle.Value{} // a dict has each key once, the last time that it is set
	items := dec.Items(v)
	for i := 0; i+1 < len(items); i += 2 {
		values[dec.Text(items[i])] = items[i+1]
	}
	var conf []setting
	if text := values["PYTORCH_CUDA_ALLOC_CONF"]; text.Kind() == pickle.Str {
		conf = parseConf(clip(dec.Text(text), maxConf))
	}
	set := func(key, as string, text func(*pickle.Decoder, pickle.Value) string) {
		if value, ok := values[key]; ok {
			conf = override(conf, as, text(dec, value))
		}
	}
	set("max_split_size", "max_split_size_mb", splitSize)
	for _, key := range []string{"expandable_segments", "release_lock_on_cudamalloc", "graph_capture_record_stream_reuse"} {
		set(key, key, enabled)
	}
	set("garbage_collection_threshold", "garbage_collection_threshold", threshold)
	set("roundup_power2_divisions", "roundup_power2_divisions", divisions)
	parts := make([]string, len(conf))
	for i, s := range conf {
		parts[i] = s.key + ":" + s.value
	}
	return strings.Join(parts, ",")
}

// parseConf reads the variable, without the settings that have no value.
func parseConf(text string) []setting {
	var conf []setting
	for _, part := range allocconf.Split(text) {
		if key, value, ok := allocconf.Cut(part); ok && key != "" {
			conf = override(conf, key, value)
		}
	}
	return conf
}

// override sets key to value, or removes it when value is empty.
func override(conf []setting, key, value string) []setting {
	i := slices.IndexFunc(conf, func(s setting) bool { return s.key == key })
	switch {
	case value == "" && i >= 0:
		return slices.Delete(conf, i, i+1)
	case value == "":
		return conf
	case i >= 0:
		conf[i].value = value
		return conf
	}
	return append(conf, setting{key, value})
}

// splitSize returns bytes as MiB; "" for no limit, which is -1.
func splitSize(dec *pickle.Decoder, v pickle.Value) string {
	n, ok := dec.Int64(v)
	if !ok || n <= 0 {
		return ""
	}
	return strconv.FormatInt(n>>20, 10)
}

func threshold(dec *pickle.Decoder, v pickle.Value) string {
	f, ok := dec.Float64(v)
	if !ok || !(f > 0) {
		return ""
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}

func enabled(_ *pickle.Decoder, v pickle.Value) string {
	if v.True() {
		return "True"
	}
	return ""
}

// divisions returns the table of divisions by size in MiB; "" when there are none. All classes are written, because
// the parser of PyTorch gives those before the first one the first one's value.
func divisions(dec *pickle.Decoder, v pickle.Value) string {
	items := dec.Items(v)
	var parts []string
	some := false
	for i := 0; i+1 < len(items); i += 2 {
		size, err := strconv.ParseUint(dec.Text(items[i]), 10, 32)
		n, ok := dec.Int64(items[i+1])
		if err != nil || !ok || n < 0 {
			return ""
		}
		some = some || n != 0
		parts = append(parts, fmt.Sprintf("%d:%d", size, n))
	}
	if !some {
		return ""
	}
	return "[" + strings.Join(parts, ",") + "]"
}
