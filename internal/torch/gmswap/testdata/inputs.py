"""Tells which of two steps' inputs differ in all that varies."""

from gmswap_hook.inputs import Inputs

inputs = Inputs()
assert not inputs.vary()
for dims in (8, 32, 8, 32), (8, 24, 8, 24):
    inputs.saw(dims)
assert inputs.vary() and inputs.differ((8, 24, 8, 24), (8, 32, 8, 32))  # batches are not known to vary
for _ in range(7):
    inputs.saw((8, 32, 8, 32))
inputs.saw((4, 24, 4, 24))
assert inputs.differ((8, 24, 8, 24), (8, 32, 8, 32))  # they seldom do
for _ in range(4):
    inputs.saw((4, 32, 4, 32))
assert not inputs.differ((8, 24, 8, 24), (8, 32, 8, 32)) and not inputs.differ((8, 24, 8, 24), (4, 24, 4, 24))
assert inputs.differ((8, 24, 8, 24), (4, 32, 4, 32)) and inputs.differ((), ())
assert not inputs.differ((16, 24, 16, 24), (12, 32, 12, 32))  # in no more than each
assert inputs.differ((8, 24, 8, 24), (8, 24)) and inputs.differ((8, 24), (8, 32))  # those of another kind
inputs.saw((4, 24))
inputs.saw(())
assert inputs.differ((8, 24), (4, 24)) and not inputs.differ((8, 24), (8, 32))
many = Inputs()
for n in range(4):
    many.saw(tuple(10 + (n != i) for i in range(4)))
assert many.differ((10, 10, 10, 10), (11, 10, 10, 10))  # few steps differ in four ways
