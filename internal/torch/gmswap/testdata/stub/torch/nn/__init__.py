"""Modules."""

from . import modules, parallel  # noqa: F401
from .modules.module import Module, Parameter  # noqa: F401
from .parallel import DataParallel  # noqa: F401
