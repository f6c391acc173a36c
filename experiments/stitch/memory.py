"""What holds a GPU's memory, by the driver and by the allocator."""

import ctypes
import threading
import time

import torch


class NVML:
    """libnvidia-ml.so.1, or nothing where there is none."""

    class Memory(ctypes.Structure):
        _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]

    def __init__(self, device):
        self.device = None
        try:
            self.library = ctypes.CDLL("libnvidia-ml.so.1")
        except OSError:
            return
        uuid = str(torch.cuda.get_device_properties(device).uuid)
        handle = ctypes.c_void_p()
        name = uuid if uuid.startswith("GPU-") else "GPU-" + uuid
        if self.library.nvmlInit_v2() == 0 and self.library.nvmlDeviceGetHandleByUUID(name.encode(), ctypes.byref(handle)) == 0:
            self.device = handle

    def used(self):
        """Returns the bytes in use on the whole device, or 0."""
        memory = self.Memory()
        if self.device is None or self.library.nvmlDeviceGetMemoryInfo(self.device, ctypes.byref(memory)) != 0:
            return 0
        return memory.used


class Watch(threading.Thread):
    """Samples NVML while a program runs."""

    def __init__(self, device, seconds=0.005):
        super().__init__(daemon=True)
        self.nvml, self.seconds, self.peak = NVML(device), seconds, 0
        self.ended = threading.Event()

    def run(self):
        while self.nvml.device is not None and not self.ended.is_set():
            self.peak = max(self.peak, self.nvml.used())
            time.sleep(self.seconds)

    def end(self):
        self.ended.set()
        self.join()
        return self.peak


def driver_used(device):
    """Returns the bytes in use on the whole device, as the driver counts them."""
    free, total = torch.cuda.mem_get_info(device)
    return total - free


def account(device):
    """Returns the allocator's own account: its peaks and its failures."""
    stats = torch.cuda.memory_stats(device)
    allocated, reserved = torch.cuda.max_memory_allocated(device), torch.cuda.max_memory_reserved(device)
    return {
        "backend": torch.cuda.memory.get_allocator_backend(),
        "max_allocated": allocated,
        "max_reserved": reserved,
        "max_requested": stats.get("requested_bytes.all.peak", 0),
        "utilisation": allocated / max(1, reserved),
        "retries": stats.get("num_alloc_retries", 0),
        "ooms": stats.get("num_ooms", 0),
    }
