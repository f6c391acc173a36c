// Plot draws the tensors of a viewer over time: as a stack of bytes, or as a map of their addresses.
class Plot {
	constructor(viewer, box, fill) {
		this.viewer = viewer;
		this.box = box;
		this.fill = fill; // "stack" or "map"
		this.canvas = box.querySelector("canvas");
		this.tip = box.querySelector(".tip");
		this.picture = document.createElement("canvas");
		this.pixels = new Int32Array(0); // what each pixel shows, column by column from the bottom
		this.whole();
	}

	// most returns the bytes that the plot shows when it shows all: as many as that of a recording to compare with.
	get most() { return this.fill === "map" ? Math.max(this.viewer.tensors.height, 1) : Math.max(this.own, this.viewer.common || 0); }

	get own() {
		const { tensors } = this.viewer;
		const most = Math.max(tensors.live[tensors.peak], tensors.mostReserved, 1), capacity = tensors.meta.capacity;
		return (capacity > most && capacity < 1.5 * most ? capacity : most) * 1.06;
	}

	whole() { [this.lo, this.hi] = [0, this.most]; }

	// setBytes shows the bytes between two bounds.
	setBytes(lo, hi) {
		const span = clamp(hi - lo, Math.min(this.most, 4096), this.most);
		this.lo = clamp((lo + hi - span) / 2, 0, this.most - span);
		this.hi = this.lo + span;
		this.viewer.draw();
	}

	zoomBytes(factor, at = (this.lo + this.hi) / 2) { this.setBytes(at - (at - this.lo) * factor, at + (this.hi - at) * factor); }

	moveBytes(share) { this.setBytes(this.lo + share * (this.hi - this.lo), this.hi + share * (this.hi - this.lo)); }

	get frame() {
		const width = this.canvas.clientWidth, height = this.canvas.clientHeight;
		const top = this.viewer.tensors.meta.ooms.length ? 31 : 18; // failures are named above the iterations
		return { left: width < 500 ? 60 : 66, right: width - 6, top, bottom: height - 22, width, height };
	}

	bytes(f, y) { return this.lo + (f.bottom - y) / (f.bottom - f.top) * (this.hi - this.lo); }

	y(f, bytes) { return f.bottom - (bytes - this.lo) / (this.hi - this.lo) * (f.bottom - f.top); }

	// raster finds what each pixel shows: each column the position with the most live bytes of its stretch of time. With a step of more
	// than 1 it leaves columns out.
	raster(step) {
		const f = this.frame, ratio = Math.min(pixelRatio(), 2), { viewer } = this, { tensors } = viewer;
		const width = this.columns = Math.max(1, Math.round((f.right - f.left) * ratio));
		const height = this.lines = Math.max(1, Math.round((f.bottom - f.top) * ratio));
		if (this.pixels.length !== width * height) this.pixels = new Int32Array(width * height);
		this.positions = new Int32Array(width);
		const sweep = viewer.sweep, scale = height / (this.hi - this.lo);
		const at = x => viewer.position(viewer.from + (viewer.to - viewer.from) * x / width);
		let from = at(0), before = -1;
		for (let x = 0; x < width; x += step) {
			const to = at(Math.min(x + step, width)), end = x + step < width ? Math.max(from, to - 1) : to;
			let best = from;
			for (let p = from + 1; p <= end; p++) if (tensors.live[p] > tensors.live[best]) best = p;
			from = Math.max(from, to);
			if (best === before) {
				this.pixels.copyWithin(x * height, (x - step) * height, (x - step + 1) * height);
			} else {
				if (before < 0) sweep.start(best); else sweep.advance(best);
				sweep[this.fill](this.pixels, x * height, height, this.lo, scale);
				before = best;
			}
			for (let k = 1; k < step && x + k < width; k++) this.pixels.copyWithin((x + k) * height, x * height, (x + 1) * height);
			this.positions.fill(best, x, Math.min(x + step, width));
		}
		this.paint();
	}

	// paint makes a picture of the pixels.
	paint() {
		const { columns, lines, pixels, positions, picture } = this, { colors, tensors } = this.viewer;
		[picture.width, picture.height] = [columns, lines];
		const context = picture.getContext("2d"), image = context.createImageData(columns, lines), out = new Uint32Array(image.data.buffer);
		for (let x = 0; x < columns; x++) {
			const begun = x && positions[x] - positions[x - 1] < 16 ? positions[x - 1] : never;
			for (let y = 0, from = x * lines; y < lines;) {
				const i = pixels[from + y], low = y;
				while (y < lines && pixels[from + y] === i) y++;
				if (i === nothing) continue;
				const pair = i === idle ? colors.idle : colors.of(i), tall = y - low > 5;
				const color = tall && i >= 0 && tensors.births[i] >= begun ? pair[1] : pair[0];
				for (let k = low; k < y; k++) out[(lines - 1 - k) * columns + x] = color;
				if (tall && i >= 0) out[(lines - y) * columns + x] = pair[1];
			}
		}
		context.putImageData(image, 0, 0);
	}

	draw() {
		const f = this.frame, ratio = pixelRatio(), { canvas, viewer } = this;
		if (!f.width) return;
		const width = Math.round(f.width * ratio), height = Math.round(f.height * ratio);
		if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
		const c = canvas.getContext("2d");
		c.setTransform(ratio, 0, 0, ratio, 0, 0);
		c.clearRect(0, 0, f.width, f.height);
		c.font = "12px system-ui, 'DejaVu Sans', sans-serif";
		this.sections(c, f);
		c.imageSmoothingEnabled = false;
		c.drawImage(this.picture, f.left, f.top, f.right - f.left, f.bottom - f.top);
		this.scale(c, f);
		viewer.timeAxis(c, f);
		if (this.fill === "stack") this.capacity(c, f);
		this.failures(c, f);
		if (viewer.pinned) this.outline(c, f, viewer.pinned.tensor, 1);
		if (viewer.hover) this.outline(c, f, viewer.hover.tensor, .6);
		this.cursors(c, f);
	}

	// scale draws the lines of the bytes.
	scale(c, f) {
		const step = nice(this.hi - this.lo, Math.max(2, f.height / 45), true);
		c.strokeStyle = this.viewer.colors.ink;
		c.fillStyle = this.viewer.colors.dim;
		[c.textAlign, c.textBaseline, c.lineWidth] = ["right", "middle", 1];
		for (let n = Math.ceil(this.lo / step) * step; n <= this.hi; n += step) {
			const y = Math.round(this.y(f, n)) + .5;
			c.globalAlpha = .12;
			line(c, f.left, y, f.right, y);
			c.globalAlpha = 1;
			c.fillText(bytes(n), f.left - 5, y);
		}
	}

	// sections draws where iterations begin, with their numbers: every second, fifth or tenth and so on where there is no room for all.
	sections(c, f) {
		const { viewer } = this, all = viewer.tensors.meta.sections, step = this.numbering(c, f);
		[c.textAlign, c.textBaseline] = ["left", "bottom"];
		let free = f.left;
		for (const [number, section] of all.entries()) {
			const x = viewer.x(f, viewer.unitOf(section.from)), end = viewer.x(f, viewer.unitOf(section.to));
			if (end < f.left || x > f.right) continue;
			c.fillStyle = viewer.colors.soft;
			if (number % 2) c.fillRect(Math.max(x, f.left), f.top, Math.min(end, f.right) - Math.max(x, f.left), f.bottom - f.top);
			if (number % step) continue;
			const text = String(number), at = Math.max(x, f.left) + 2, room = c.measureText(text).width;
			if (at < free || at + room > Math.min(step > 1 ? f.right : end, f.right) + 6) continue;
			c.fillStyle = viewer.colors.dim;
			c.fillText(text, at, f.top - 2);
			free = at + room + 6;
		}
	}

	// numbering returns of how many iterations one has its number drawn, so that all numbers have room.
	numbering(c, f) {
		const { viewer } = this, all = viewer.tensors.meta.sections, x = place => viewer.x(f, viewer.unitOf(place));
		const shown = all.filter(s => x(s.to) >= f.left && x(s.from) <= f.right);
		if (!shown.length) return 1;
		const wide = (x(shown.at(-1).to) - x(shown[0].from)) / shown.length || 1;
		return Math.max(1, nice(c.measureText(String(all.length)).width + 8, wide));
	}

	capacity(c, f) {
		const capacity = this.viewer.tensors.meta.capacity;
		if (!capacity || capacity > this.hi || capacity < this.lo) return;
		const y = Math.round(this.y(f, capacity)) + .5;
		c.strokeStyle = c.fillStyle = this.viewer.colors.alarm;
		c.setLineDash([6, 4]);
		line(c, f.left, y, f.right, y);
		c.setLineDash([]);
		[c.textAlign, c.textBaseline] = ["left", "bottom"];
		c.fillText("capacity " + bytes(capacity), f.left + 4, y - 2);
	}

	// failures draws the requests that failed.
	failures(c, f) {
		const { viewer } = this;
		c.strokeStyle = c.fillStyle = viewer.colors.alarm;
		c.lineWidth = 1.5;
		let free = f.right;
		for (const oom of viewer.tensors.meta.ooms.toReversed()) {
			const x = viewer.x(f, viewer.unitOf(oom));
			if (x < f.left - 1 || x > f.right + 1) continue;
			line(c, x, f.top - 16, x, f.bottom);
			const right = Math.min(x + 12, f.right);
			if (right > free) continue;
			[c.textAlign, c.textBaseline] = ["right", "bottom"];
			c.fillText("OOM", right, f.top - 16);
			free = right - 34;
		}
	}

	// outline marks a tensor wherever a pixel shows it.
	outline(c, f, tensor, alpha) {
		if (!(tensor >= 0)) return;
		const { births, deaths } = this.viewer.tensors, { columns, lines, pixels, positions } = this;
		const wide = (f.right - f.left) / columns, tall = (f.bottom - f.top) / lines;
		c.fillStyle = this.viewer.colors.ink;
		c.globalAlpha = alpha;
		for (let x = 0; x < columns; x++) {
			if (positions[x] <= births[tensor] || positions[x] > deaths[tensor]) continue;
			const from = x * lines, low = pixels.subarray(from, from + lines).indexOf(tensor);
			if (low < 0) continue;
			let high = low;
			while (high < lines && pixels[from + high] === tensor) high++;
			c.fillRect(f.left + x * wide, f.bottom - high * tall, wide, Math.max((high - low) * tall, 1));
		}
		c.globalAlpha = 1;
	}

	// cursors draws the moment that the page describes, the pointer, and the box that is being chosen.
	cursors(c, f) {
		const { viewer } = this, { colors } = viewer;
		c.lineWidth = 1;
		for (const [position, color] of [[viewer.moment, colors.accent], [viewer.hover?.position, colors.dim]]) {
			if (position === undefined) continue;
			const x = Math.round(viewer.middle(f, position)) + .5;
			if (x < f.left || x > f.right) continue;
			c.strokeStyle = c.fillStyle = color;
			line(c, x, f.top, x, f.bottom);
			if (position !== viewer.moment) continue;
			c.beginPath();
			c.moveTo(x - 5, f.top - 6);
			c.lineTo(x + 5, f.top - 6);
			c.lineTo(x, f.top + 2);
			c.fill();
		}
		if (this.chosen) {
			const { x0, y0, x1, y1 } = this.chosen;
			c.fillStyle = c.strokeStyle = colors.accent;
			c.globalAlpha = .2;
			c.fillRect(x0, y0, x1 - x0, y1 - y0);
			c.globalAlpha = 1;
			c.strokeRect(x0, y0, x1 - x0, y1 - y0);
		}
	}

	// pick returns what is at a point of the canvas.
	pick(x, y) {
		const f = this.frame, column = clamp(Math.floor((x - f.left) / (f.right - f.left) * this.columns), 0, this.columns - 1);
		const row = clamp(Math.floor((f.bottom - y) / (f.bottom - f.top) * this.lines), 0, this.lines - 1);
		return { tensor: this.pixels[column * this.lines + row], position: this.positions[column], bytes: this.bytes(f, y), plot: this };
	}
}

function line(c, x0, y0, x1, y1) {
	c.beginPath();
	c.moveTo(x0, y0);
	c.lineTo(x1, y1);
	c.stroke();
}
