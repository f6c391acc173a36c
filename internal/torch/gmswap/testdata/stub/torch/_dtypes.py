"""Types, shapes and devices."""


class dtype(object):
    """Has no itemsize: that is new in 2.1."""

    def __init__(self, name, size):
        self.name, self.size = name, size

    def __repr__(self):
        return "torch." + self.name


float32, int32, int64, uint8, bool = dtype("float32", 4), dtype("int32", 4), dtype("int64", 8), dtype("uint8", 1), dtype("bool", 1)
strided = "torch.strided"


class Size(tuple):
    pass


class device(object):
    def __init__(self, type, index=None):
        type, _, number = type.partition(":")
        self.type, self.index = type, int(number) if number else 0 if index is None and type == "cuda" else index

    def __eq__(self, other):
        return isinstance(other, device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self):
        return hash((self.type, self.index))
