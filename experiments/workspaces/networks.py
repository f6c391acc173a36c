"""The convolutions of the networks of Dymem's evaluation (HPDC 2020, section 4.3), layer by layer.

Layers are named as in `gmswap net`; a test of internal/models/graphs compares what was measured with its networks.
"""

import collections

Convolution = collections.namedtuple("Convolution", "layer channels height width filters kernel_height kernel_width stride pad_height pad_width groups")

# In the order in which they are measured. ResNet-101 and ResNet-152 have the shapes of ResNet-50.
NETWORKS = (("vgg-16", 256), ("alexnet", 256), ("resnet-50", 100), ("inception-v4", 128), ("vgg-16", 64), ("vgg-16", 128))


class Network:
    """Collects convolutions. Shapes of activations are (channels, height, width)."""

    def __init__(self):
        self.all = []

    def conv(self, layer, x, filters, kernel, stride=1, pad=None, groups=1):
        """Adds one and returns the shape of its output. Without pad it keeps the size, but for the stride."""
        r, s = kernel
        ph, pw = (r // 2, s // 2) if pad is None else (pad, pad)
        self.all.append(Convolution(layer, *x, filters, r, s, stride, ph, pw, groups))
        return filters, (x[1] + 2 * ph - r) // stride + 1, (x[2] + 2 * pw - s) // stride + 1


def pool(x, k, stride, pad=0):
    return x[0], (x[1] + 2 * pad - k) // stride + 1, (x[2] + 2 * pad - k) // stride + 1


def alexnet():
    n = Network()
    x = pool(n.conv("conv1", (3, 227, 227), 96, (11, 11), 4, 0), 3, 2)
    x = pool(n.conv("conv2", x, 256, (5, 5), groups=2), 3, 2)
    x = n.conv("conv3", x, 384, (3, 3))
    x = n.conv("conv4", x, 384, (3, 3), groups=2)
    n.conv("conv5", x, 256, (3, 3), groups=2)
    return n.all


def vgg16():
    n, x = Network(), (3, 224, 224)
    for stage, (channels, convolutions) in enumerate(((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)), 1):
        for i in range(convolutions):
            x = n.conv(f"conv{stage}_{i + 1}", x, channels, (3, 3))
        x = pool(x, 2, 2)
    return n.all


def resnet50():
    n = Network()
    x = pool(n.conv("stem.conv", (3, 224, 224), 64, (7, 7), 2, 3), 3, 2, 1)
    for stage, count in enumerate((3, 4, 6, 3)):
        for i in range(count):
            name, width, stride = f"stage{stage + 1}.{i}", 64 << stage, 2 if i == 0 and stage > 0 else 1
            y = n.conv(name + ".conv1", x, width, (1, 1))
            y = n.conv(name + ".conv2", y, width, (3, 3), stride)
            y = n.conv(name + ".conv3", y, 4 * width, (1, 1))
            if i == 0:
                n.conv(name + ".shortcut", x, 4 * width, (1, 1), stride)
            x = y
    return n.all


# The branches of Inception-v4: filters, the window, and "half" for stride 2 or "inner" for stride 1, both without padding.
ONE, THREE, ROW3, COLUMN3, ROW7, COLUMN7 = (1, 1), (3, 3), (1, 3), (3, 1), (1, 7), (7, 1)
A = (((96, ONE),), ((64, ONE), (96, THREE)), ((64, ONE), (96, THREE), (96, THREE)), ((96, ONE),))
REDUCTION_A = (((384, THREE, "half"),), ((192, ONE), (224, THREE), (256, THREE, "half")))
B = (((384, ONE),), ((192, ONE), (224, ROW7), (256, COLUMN7)),
     ((192, ONE), (192, COLUMN7), (224, ROW7), (224, COLUMN7), (256, ROW7)), ((128, ONE),))
REDUCTION_B = (((192, ONE), (192, THREE, "half")), ((256, ONE), (256, ROW7), (320, COLUMN7), (320, THREE, "half")))


def branch(n, name, x, parts):
    for i, (filters, kernel, *kind) in enumerate(parts):
        x = n.conv(f"{name}.{i}.conv", x, filters, kernel, 2 if "half" in kind else 1, 0 if kind else None)
    return x


def block(n, name, x, branches, pooled=0):
    """A row of branches side by side, and as many channels of pooling."""
    outs = [branch(n, f"{name}.{i}", x, parts) for i, parts in enumerate(branches, 1)]
    return sum(o[0] for o in outs) + pooled, *outs[0][1:]


def inception_v4():
    n = Network()
    x = branch(n, "stem", (3, 299, 299), ((32, THREE, "half"), (32, THREE, "inner"), (64, THREE)))
    y = branch(n, "stem.1", x, ((96, THREE, "half"),))
    x = (96 + 64, *y[1:])
    branch(n, "stem.2a", x, ((64, ONE), (96, THREE, "inner")))
    y = branch(n, "stem.2b", x, ((64, ONE), (64, ROW7), (64, COLUMN7), (96, THREE, "inner")))
    x = (96 + 96, *y[1:])
    y = branch(n, "stem.3", x, ((192, THREE, "half"),))
    x = (192 + 192, *y[1:])
    for i in range(4):
        x = block(n, f"a{i + 1}", x, A)
    x = block(n, "reduction-a", x, REDUCTION_A, x[0])
    for i in range(7):
        x = block(n, f"b{i + 1}", x, B)
    x = block(n, "reduction-b", x, REDUCTION_B, x[0])
    for i in range(3):
        name = f"c{i + 1}"
        second = branch(n, name + ".2", x, ((384, ONE),))
        third = branch(n, name + ".3", x, ((384, ONE), (448, COLUMN3), (512, ROW3)))
        branch(n, name + ".1", x, ((256, ONE),))
        for y, letter in ((second, "2"), (third, "3")):
            branch(n, f"{name}.{letter}a", y, ((256, ROW3),))
            branch(n, f"{name}.{letter}b", y, ((256, COLUMN3),))
        branch(n, name + ".4", x, ((256, ONE),))
        x = (1536, *x[1:])
    return n.all


MAKE = {"alexnet": alexnet, "vgg-16": vgg16, "resnet-50": resnet50, "inception-v4": inception_v4}


def distinct(networks):
    """Yields (network, batch, convolution) for each shape once, under the first layer that has it. networks are pairs of name and batch."""
    seen = set()
    for name, batch in networks:
        for c in MAKE[name]():
            if (batch, c[1:]) not in seen:
                seen.add((batch, c[1:]))
                yield name, batch, c
