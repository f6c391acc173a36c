"""Makes libgm.so the allocator that PyTorch uses, as a pluggable allocator: where native.py cannot be."""

from . import addresses
from .library import Library

# The setters of PyTorch's object, and the functions of libgm.so that they are given.
SETTERS = (
    ("set_init_fn", "gm_init"),
    ("set_reset_fn", "gm_reset"),
    ("set_memory_fraction_fn", "gm_memory_fraction"),
    ("set_base_alloc_fn", "gm_base_alloc"),
    ("set_record_stream_fn", "gm_record_stream"),
    ("set_begin_allocate_to_pool", "gm_begin_pool"),
    ("set_end_allocate_to_pool_fn", "gm_end_pool"),
    ("set_release_pool", "gm_release_pool"),
)
# Without it, memory that another stream still uses would be handed out again, silently.
INDISPENSABLE = "set_record_stream_fn"

_kept = []  # what PyTorch refers to by its address


class Unfit(Exception):
    """Says why libgm.so cannot be used here."""


def check(torch, environ):
    """Returns the path of libgm.so, or raises where it cannot be used in any way."""
    if getattr(getattr(torch, "version", None), "hip", None):
        raise Unfit("this PyTorch is one for ROCm")
    if getattr(torch.cuda.memory, "get_allocator_backend", lambda: "native")() == "pluggable":
        raise Unfit("the program has put in one of its own")
    return libgm(environ)


def libgm(environ):
    """Returns the path of libgm.so, or raises where this process cannot load it."""
    path = environ.get("GM_LIB", "")
    if not path:
        raise Unfit("GM_LIB does not name libgm.so")
    lacking = addresses.lacking()
    if lacking:
        raise Unfit(lacking)
    return path


def install(torch, path):
    """Puts the allocator in and returns the Library; else raises, and has changed nothing."""
    memory = torch.cuda.memory
    if not hasattr(memory, "CUDAPluggableAllocator"):
        raise Unfit("PyTorch %s has no pluggable allocators" % torch.__version__)
    library = Library(path)
    allocator = make(torch, library)
    memory.change_current_allocator(allocator)
    _kept.extend((library, allocator))
    return library


def make(torch, library):
    """Returns PyTorch's object for the allocator, with all functions that it can be given."""
    allocator = torch.cuda.memory.CUDAPluggableAllocator(library.path, "gm_malloc", "gm_free")
    settings = allocator._allocator
    if not hasattr(settings, INDISPENSABLE):
        raise Unfit("PyTorch %s cannot tell an allocator which streams use its memory" % torch.__version__)
    for setter, function in SETTERS:
        if hasattr(settings, setter):
            getattr(settings, setter)(library.address(function))
    return allocator
