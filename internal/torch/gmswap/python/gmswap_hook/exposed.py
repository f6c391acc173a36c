"""Who asks for a tensor's .data, or sets it: what is written to that counts nowhere."""


class Data(property):
    """Tensor.data, with functions that are told of each tensor of which it is read or set."""

    @classmethod
    def of(cls, torch):
        known = torch.Tensor.data
        if not isinstance(known, cls):
            known = torch.Tensor.data = cls.around(known)
        return known

    @classmethod
    def around(cls, real):
        told = []

        def read(tensor):
            for tell in list(told):
                tell(tensor)
            return real.__get__(tensor)

        def set(tensor, other):
            for tell in list(told):
                tell(tensor)
            real.__set__(tensor, other)

        data = cls(read, set, doc=real.__doc__)
        data.told, data.put = told, real.__set__
        return data
