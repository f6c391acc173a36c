"""Models of images: timm, torchvision, Lightning, and a U-Net by hand."""

import random

import torch
import torch.nn.functional as F


def timm_model(steps, model="tf_efficientnetv2_m"):
    """Batches and pictures of several sizes, fp16 with a scaler, channels last."""
    import timm
    import timm.optim

    net = timm.create_model(model, pretrained=False, num_classes=1000).cuda().to(memory_format=torch.channels_last).train()
    optimizer = timm.optim.create_optimizer_v2(net, opt="lamb", lr=1e-3)
    scaler = torch.amp.GradScaler("cuda")
    for step in range(steps):
        rng = random.Random(step)
        batch, side = rng.choice([96, 112, 128, 144]), rng.choice([192, 224, 256, 288, 320])
        x = torch.rand(batch, 3, side, side, device="cuda").to(memory_format=torch.channels_last)
        with torch.autocast("cuda", dtype=torch.float16):
            loss = F.cross_entropy(net(x), torch.randint(0, 1000, (batch,), device="cuda"))
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        yield loss


def vit(steps, batch=128, checkpoints=False, model="vit_large_patch16_224", side=224):
    """A model of timm, ViT-L if none is named, always of the same size, fp16 with a scaler."""
    import timm

    net = timm.create_model(model, pretrained=False, num_classes=1000).cuda().train()
    net.set_grad_checkpointing(bool(checkpoints))
    batch, side = int(batch), int(side)
    optimizer, scaler = torch.optim.AdamW(net.parameters(), lr=1e-4), torch.amp.GradScaler("cuda")
    x, labels = torch.rand(batch, 3, side, side, device="cuda"), torch.randint(0, 1000, (batch,), device="cuda")
    for step in range(steps):
        with torch.autocast("cuda", dtype=torch.float16):
            loss = F.cross_entropy(net(x), labels)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        yield loss


def maskrcnn(steps, batch=8):
    """Detection: each picture has a size of its own, and as many objects as it has."""
    import torchvision

    model = torchvision.models.detection.maskrcnn_resnet50_fpn(weights=None, weights_backbone=None, num_classes=20).cuda().train()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9)
    for step in range(steps):
        rng = random.Random(step)
        images, targets = [], []
        for _ in range(int(batch)):
            height, width, n = rng.randint(480, 1000), rng.randint(480, 1300), rng.randint(1, 30)
            corner = torch.rand(n, 2, device="cuda") * torch.tensor([width - 60, height - 60], device="cuda")
            images.append(torch.rand(3, height, width, device="cuda"))
            targets.append({
                "boxes": torch.cat([corner, corner + 20 + 39 * torch.rand(n, 2, device="cuda")], 1),
                "labels": torch.randint(1, 20, (n,), device="cuda"),
                "masks": (torch.rand(n, height, width, device="cuda") > 0.5).to(torch.uint8),
            })
        loss = sum(model(images, targets).values())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss


def swin(steps):
    """Swin v2 of torchvision, stepped by Lightning's Fabric, batches of 32 to 96."""
    import lightning
    import torchvision

    fabric = lightning.Fabric(accelerator="cuda", devices=1, precision="bf16-mixed")
    model = torchvision.models.swin_v2_b(weights=None)
    model, optimizer = fabric.setup(model, torch.optim.AdamW(model.parameters(), lr=1e-4))
    for step in range(steps):
        batch = random.Random(step).randint(32, 96)
        loss = F.cross_entropy(model(torch.rand(batch, 3, 256, 256, device="cuda")), torch.randint(0, 1000, (batch,), device="cuda"))
        optimizer.zero_grad()
        fabric.backward(loss)
        optimizer.step()
        yield loss


def deeplab(steps):
    """Segmentation of crops of all sizes."""
    import torchvision

    model = torchvision.models.segmentation.deeplabv3_resnet101(weights=None, weights_backbone=None, num_classes=21).cuda().train()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    for step in range(steps):
        rng = random.Random(step)
        shape = rng.randint(4, 10), rng.randint(256, 640), rng.randint(256, 640)
        x = torch.rand(shape[0], 3, *shape[1:], device="cuda")
        loss = F.cross_entropy(model(x)["out"], torch.randint(0, 21, shape, device="cuda"))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss


class Block(torch.nn.Module):
    """Two convolutions with a residual."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.first = torch.nn.Sequential(torch.nn.GroupNorm(32, inputs), torch.nn.SiLU(), torch.nn.Conv2d(inputs, outputs, 3, padding=1))
        self.second = torch.nn.Sequential(torch.nn.GroupNorm(32, outputs), torch.nn.SiLU(), torch.nn.Conv2d(outputs, outputs, 3, padding=1))
        self.skip = torch.nn.Conv2d(inputs, outputs, 1)

    def forward(self, x):
        return self.skip(x) + self.second(self.first(x))


class UNet(torch.nn.Module):
    def __init__(self, widths=(192, 384, 576, 768)):
        super().__init__()
        self.first = torch.nn.Conv2d(4, widths[0], 3, padding=1)
        self.down = torch.nn.ModuleList(Block(a, b) for a, b in zip((widths[0],) + widths, widths))
        self.up = torch.nn.ModuleList(Block(2 * b, a) for a, b in zip((widths[0],) + widths, widths))
        self.last = torch.nn.Conv2d(widths[0], 4, 3, padding=1)

    def forward(self, x):
        x, kept = self.first(x), []
        for block in self.down:
            x = block(x)
            kept.append(x)
            x = F.avg_pool2d(x, 2)
        for block in reversed(self.up):
            left = kept.pop()
            x = block(torch.cat([left, F.interpolate(x, size=left.shape[-2:])], 1))
        return self.last(x)


def unet(steps):
    """Diffusion on latents in buckets of aspect, with a running average of the weights."""
    model = UNet().cuda()
    average = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.999))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for step in range(steps):
        rng = random.Random(step)
        height, width = rng.choice([(64, 64), (48, 80), (80, 48), (56, 72), (96, 40)])
        noise = torch.randn(rng.choice([8, 12, 16]), 4, height, width, device="cuda")
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = F.mse_loss(model(noise + torch.randn_like(noise)), noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average.update_parameters(model)
        yield loss
