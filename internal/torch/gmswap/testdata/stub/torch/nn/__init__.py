"""Modules."""

from . import modules  # noqa: F401
from .modules.module import Module, Parameter  # noqa: F401
