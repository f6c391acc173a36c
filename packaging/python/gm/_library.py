"""libgm.so, as this process has it."""

import ctypes
import functools
import os


def path():
    """Return the libgm.so that this process has loaded, for there can be one only, or else that of the package."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        for line in maps:
            name = line.split(maxsplit=5)[-1].strip().removesuffix(" (deleted)")
            if os.path.basename(name) == "libgm.so":
                return name
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "libgm.so")


@functools.lru_cache(maxsize=None)
def library():
    found = ctypes.CDLL(path())
    size, pointer, number, long = ctypes.c_size_t, ctypes.c_void_p, ctypes.c_int, ctypes.c_int64
    for name, result, *arguments in (
        ("gm_key_open", number, number, ctypes.c_char_p, pointer),
        ("gm_key_make", pointer, long, size),
        ("gm_key_write", number, long, size, pointer, size),
        ("gm_key_freeze", number, long),
        ("gm_key_close", number, long),
        ("gm_store_open", long, number, pointer),
        ("gm_store_create", long, long, size, pointer, pointer),
        ("gm_store_get", pointer, long, long, number, pointer),
        ("gm_store_put", number, long, long, long, pointer),
        ("gm_store_free", number, long, long, pointer),
        ("gm_store_get_stats", number, long, pointer),
        ("gm_store_close", number, long),
        ("gm_last_error", size, ctypes.c_char_p, size),
    ):
        function = getattr(found, name)
        function.restype, function.argtypes = result, arguments
    return found


def last_error():
    """Return the text of this thread's last failure."""
    text = ctypes.create_string_buffer(4096)
    library().gm_last_error(text, len(text))
    return text.value.decode(errors="replace")
