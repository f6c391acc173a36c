"""libgm.so's part that moves memory, as gm.h declares it."""

import atexit
import ctypes

from . import say


class Failure(Exception):
    """The error that gm_last_error returned."""


class Stats(ctypes.Structure):
    """struct gm_swap_stats."""

    _fields_ = [(name, ctypes.c_int64) for name in (
        "copies_out", "copies_in", "bytes_out", "bytes_in", "host_bytes", "host_peak", "arena_bytes", "pinned_bytes",
        "registrations", "pin_ns", "out_busy_ns", "in_busy_ns", "borrows", "borrowed_bytes", "borrowed_peak",
    )]


class Counter(ctypes.Structure):
    """struct gm_counter."""

    _fields_ = [(name, ctypes.c_int64) for name in ("current", "peak", "allocated", "freed")]


class Account(ctypes.Structure):
    """struct gm_stats."""

    _fields_ = [(name, 3 * Counter) for name in ("allocation", "allocated_bytes", "requested_bytes", "active_bytes", "reserved_bytes", "segment")] + [
        (name, ctypes.c_int64) for name in ("retries", "ooms", "stitches", "driver_calls", "driver_ns")]


UNPLANNED, RECORDED, PLANNING, FOLLOWED = range(4)  # enum gm_plan
BORROW = ctypes.c_size_t(-1).value  # a relief's answer: the request has memory of the host
RELIEF = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_int, ctypes.c_size_t, ctypes.c_void_p)


class Library(object):
    reliefs = ()  # functions that C may be calling

    def __init__(self, path):
        self.lib = lib = ctypes.CDLL(path)
        self.rooms = {}  # what makes room, by device
        self.before = lambda device, size, stream: 0  # what does on other devices
        self.answers = False  # requests that find no room are answered
        stream, ticket = ctypes.c_void_p, ctypes.c_int64
        for name, result, arguments in (
            ("gm_last_error", ctypes.c_size_t, (ctypes.c_char_p, ctypes.c_size_t)),
            ("gm_device_of", ctypes.c_int, (ctypes.c_void_p,)),
            ("gm_memory_fraction", None, (ctypes.c_double, ctypes.c_int)),
            ("gm_record_stream", None, (ctypes.c_void_p, stream)),
            ("gm_get_stats", ctypes.c_int, (ctypes.c_int, ctypes.POINTER(Account))),
            ("gm_mark_peak", None, (ctypes.c_int,)),
            ("gm_marked_peak", ctypes.c_int64, (ctypes.c_int,)),
            ("gm_swap_open", ctypes.c_int, (ctypes.c_int, ctypes.c_size_t, ctypes.c_int)),
            ("gm_swap_out", ticket, (ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, stream)),
            ("gm_swap_expect", ctypes.c_int, (ctypes.c_int, ctypes.c_size_t)),
            ("gm_swap_left", ctypes.c_int, (ctypes.c_int, ticket, stream)),
            ("gm_swap_in", ctypes.c_int, (ctypes.c_int, ticket, ctypes.c_void_p, stream)),
            ("gm_swap_ready", ctypes.c_int, (ctypes.c_int, ticket, stream)),
            ("gm_swap_drop", ctypes.c_int, (ctypes.c_int, ticket)),
            ("gm_swap_copied", ctypes.c_int, (ctypes.c_int, ticket)),
            ("gm_swap_words", ctypes.c_int, (ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_size_t, stream)),
            ("gm_swap_get_stats", ctypes.c_int, (ctypes.c_int, ctypes.POINTER(Stats))),
            ("gm_swap_close", None, (ctypes.c_int,)),
            ("gm_swap_borrow", ctypes.c_int, (ctypes.c_int, ctypes.c_size_t, stream)),
            ("gm_swap_lodge", ctypes.c_int, (ctypes.c_int, ctypes.c_size_t, stream)),
            ("gm_swap_borrowed", ctypes.c_int, (ctypes.c_void_p,)),
            ("gm_had_pools", ctypes.c_int, (ctypes.c_int,)),
            ("gm_iteration", ctypes.c_int, (ctypes.c_int, ctypes.c_int)),
            ("gm_asked_last", ctypes.c_int, ()),
            ("gm_within", ctypes.c_int, (ctypes.c_char_p,)),
            ("gm_swap_plan", ctypes.c_int64, (ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t)),
        ):
            function = getattr(lib, name)
            function.restype, function.argtypes = result, arguments

    def error(self):
        text = ctypes.create_string_buffer(1024)
        self.lib.gm_last_error(text, len(text))
        return Failure(text.value.decode("utf-8", "replace"))

    def allocates(self, address):
        """Returns whether memory is of libgm.so's allocator."""
        return self.lib.gm_device_of(address) >= 0

    def used_by(self, address, stream):
        """Says that a stream uses memory, which may have been taken in the order of another."""
        self.lib.gm_record_stream(address, stream)

    def had_pools(self, device):
        """Returns whether a CUDA graph may have been captured on a device: it knows memory by its address."""
        return self.lib.gm_had_pools(device) != 0

    def asked_last(self):
        """Returns whether a relief is called for the last time for a request."""
        return self.lib.gm_asked_last() != 0

    def borrow(self, device, size, stream):
        """Takes memory of the host for the request that found no room. Returns whether there is any."""
        return self.lib.gm_swap_borrow(device, size, stream) == 0

    def borrowed(self, address):
        """Returns whether memory is of the host, which the device uses in place."""
        return self.lib.gm_swap_borrowed(address) >= 0

    def within(self, name):
        """Returns whether a function with such a name has called, directly or not."""
        return self.lib.gm_within(name.encode()) != 0

    def allocated(self, device):
        """Returns the bytes of a device that are handed out."""
        return self.account(device).allocated_bytes[0].current

    def peak(self, device):
        """Returns the most bytes of a device that were handed out at a time since mark_peak. The peak that the program looks for is another one."""
        return self.lib.gm_marked_peak(device)

    def mark_peak(self, device):
        self.lib.gm_mark_peak(device)

    def reserved(self, device):
        """Returns the bytes that are taken from a device."""
        return self.account(device).reserved_bytes[0].current

    def bound(self, device, nbytes, total):
        """Has the allocator take at most so many of all bytes of a device."""
        self.lib.gm_memory_fraction((nbytes + 0.5) / total, device)

    def iteration(self, device, begins):
        """Says that an iteration of a device begins that is like those before, or that those to come are not. Returns how its requests are served, below 0 if
        not by a plan, whatever comes."""
        return self.lib.gm_iteration(device, begins)

    def account(self, device):
        account = Account()
        self.lib.gm_get_stats(device, ctypes.byref(account))
        return account

    def on_full(self, device, make_room):
        """Has a function make room for requests of a device that find none, up to the end of the process."""
        self.answer_requests()
        self.rooms[device] = make_room

    def on_full_before(self, make_room):
        """Has a function make room on devices that have none of their own yet."""
        self.answer_requests()
        self.before = make_room

    def answer_requests(self):
        if self.answers:
            return
        self.answers = True
        self.call(RELIEF(self.make_room))
        atexit.register(lambda: self.call(RELIEF()))

    def make_room(self, device, size, stream):
        make = self.rooms.get(device)
        return self.before(device, size, stream) if make is None else make(size, stream)

    def call(self, relief):
        Library.reliefs += (relief,)
        self.lib.gm_on_full(relief)

    def plan(self, request):
        """Returns the answer, a JSON text, to a request for a schedule."""
        return self.answer(self.lib.gm_swap_plan, request)

    def order(self, request):
        """Returns the answer, a JSON text, to a request for an order of operators."""
        return self.answer(self.asked("gm_order"), request)

    def partition(self, request):
        """Returns the answer, a JSON text, to a request for what a compiled graph saves."""
        return self.answer(self.asked("gm_partition"), request)

    def asked(self, name):
        ask = getattr(self.lib, name)  # an older library has none
        ask.restype, ask.argtypes = ctypes.c_int64, (ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t)
        return ask

    def answer(self, ask, request):
        room = max(1 << 20, 2 * len(request))
        while True:
            answer = ctypes.create_string_buffer(room)
            length = ask(request, len(request), answer, room)
            if length < 0:
                raise self.error()
            if length < room:
                return answer.value.decode()
            room = length + 1


class Lanes(object):
    """The copies of a device. Each call returns at once; order is that of the streams."""

    def __init__(self, library, device, host, timed=False):
        self.library, self.lib, self.device = library, library.lib, device
        self.told = False
        self.lodged = 0  # gradients and parameters that were put on the host
        self._check(self.lib.gm_swap_open(device, host, int(timed)))

    def _check(self, result):
        if result != 0:
            raise self.library.error()

    def out(self, address, size, stream):
        """Returns the copy's ticket, or 0 where there is none, as when the host is full."""
        ticket = self.lib.gm_swap_out(self.device, address, size, stream)
        if not ticket and not self.told:
            self.told = True
            say.line("tensors stay on the device: %s" % say.reason(self.library.error()))
        return ticket

    def expect(self, nbytes):
        """Has host memory taken ahead, for so many bytes that will be there at a time."""
        self.lib.gm_swap_expect(self.device, nbytes)

    def left(self, ticket, stream):
        self._check(self.lib.gm_swap_left(self.device, ticket, stream))

    def passed(self, ticket):
        """Returns whether a copy to the host has ended."""
        return self.lib.gm_swap_copied(self.device, ticket) == 1

    def back(self, ticket, address, stream):
        self._check(self.lib.gm_swap_in(self.device, ticket, address, stream))

    def ready(self, ticket, stream):
        self._check(self.lib.gm_swap_ready(self.device, ticket, stream))

    def drop(self, ticket):
        if self.lib.gm_swap_drop(self.device, ticket) != 0:
            say.once("host memory is lost: %s" % say.reason(self.library.error()))

    def words(self, to, address, apart, size, count, stream):
        """Copies words of some bytes, which lie so many bytes apart, to one behind the other. Returns whether it could."""
        return self.lib.gm_swap_words(self.device, to, address, apart, size, count, stream) == 0

    def lodge(self, size, stream):
        """Takes memory of the host, which the device uses in place, for a gradient or a parameter: the next request of this thread, of this size, has it. Returns whether
        there is any."""
        if self.lib.gm_swap_lodge(self.device, size, stream) != 0:
            say.once("gradients and parameters stay on the device: %s" % say.reason(self.library.error()))
            return False
        self.lodged += 1
        return True

    def lodge_none(self):
        """Gives back what was taken last, if no request has had it."""
        self.lib.gm_swap_lodge(self.device, 0, None)

    def stats(self):
        stats = Stats()
        self._check(self.lib.gm_swap_get_stats(self.device, ctypes.byref(stats)))
        return stats
