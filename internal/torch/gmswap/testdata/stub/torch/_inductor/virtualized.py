"""The graph that is being compiled."""

import time
from types import SimpleNamespace

V = SimpleNamespace(graph=SimpleNamespace(creation_time=time.time()))
