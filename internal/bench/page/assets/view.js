// View is the curves, the strip and the map of one section, which show the same stretch of time.
class View {
	constructor(element, section, unpack) {
		this.section = section;
		this.times = unpack.numbers();
		this.span = Math.max(section.span, this.times.at(-1) || 0, ...section.failed, 1);
		if (section.map) this.span = Math.max(this.span, section.map.span);
		this.series = section.series.map((s, i) => {
			const series = { name: s.name, color: i % 8, drawn: s.drawn, died: s.died, reserved: s.drawn, allocated: false };
			if (s.drawn) {
				const curve = () => {
					const most = unpack.numbers();
					return new Curve(section.stride > 1 ? unpack.numbers() : most, most);
				};
				series.curves = { allocated: curve(), reserved: curve() };
			}
			return series;
		});
		const main = this.series.find(s => s.drawn && section.map && s.name === section.map.name) || this.series.find(s => s.drawn);
		if (main) main.allocated = true;
		if (section.map) {
			this.live = unpack.bytes();
			this.held = unpack.bytes();
		}
		this.from = 0;
		this.to = this.span;
		this.cursor = null;
		this.chart = element.querySelector(".chart");
		this.strip = element.querySelector(".strip");
		this.map = element.querySelector(".map");
		this.status = element.querySelector(".now");
		this.keys(element.querySelector(".keys"));
		for (const button of element.querySelectorAll(".buttons button")) button.onclick = () => this.act(button.dataset.do);
		for (const box of [this.chart, this.map]) if (box) listen(this, box);
		listenStrip(this);
		new ResizeObserver(() => this.draw()).observe(this.chart);
		this.restyle();
	}

	// keys makes the legend, whose boxes choose what is shown.
	keys(box) {
		for (const s of this.series.filter(s => s.drawn)) {
			const key = document.createElement("span");
			key.className = "key";
			const swatch = document.createElement("span");
			swatch.className = "swatch s" + s.color;
			key.append(swatch);
			for (const what of ["reserved", "allocated"]) {
				const label = document.createElement("label"), input = document.createElement("input");
				input.type = "checkbox";
				input.checked = s[what];
				input.onchange = () => { s[what] = input.checked; this.draw(); };
				input.setAttribute("aria-label", s.name + ", " + what);
				if (what === "reserved") label.className = "main";
				label.append(input, what === "reserved" ? s.name : "allocated");
				key.append(label);
			}
			box.append(key);
		}
	}

	restyle() {
		const style = getComputedStyle(document.documentElement), color = name => style.getPropertyValue("--" + name).trim();
		this.colors = { paper: color("paper"), ink: color("ink"), dim: color("dim"), line: color("line"), accent: color("accent"), alarm: color("alarm"), s: [] };
		for (let i = 0; i < 8; i++) this.colors.s.push(color("s" + i));
		if (this.map) this.picture = this.paint(color("live").split(",").map(Number), color("idle").split(",").map(Number));
		this.draw();
	}

	// paint makes a picture of the map, a pixel a cell.
	paint(live, idle) {
		const { columns, lines } = this.section.map;
		const canvas = document.createElement("canvas");
		canvas.width = columns;
		canvas.height = lines;
		const context = canvas.getContext("2d"), image = context.createImageData(columns, lines), pixels = image.data;
		for (let x = 0; x < columns; x++) {
			for (let y = 0; y < lines; y++) {
				const cell = x * lines + y, at = 4 * ((lines - 1 - y) * columns + x);
				const used = this.live[cell] / 255, there = Math.max(this.held[cell] / 255, used);
				if (!there) continue;
				const share = used / there;
				for (let c = 0; c < 3; c++) pixels[at + c] = idle[c] + (live[c] - idle[c]) * share;
				pixels[at + 3] = 255 * Math.min(1, there);
			}
		}
		context.putImageData(image, 0, 0);
		return canvas;
	}

	draw() {
		if (this.waiting) return;
		this.waiting = requestAnimationFrame(() => {
			this.waiting = 0;
			this.drawNow();
		});
	}

	drawNow() {
		this.drawChart();
		this.drawStrip();
		if (this.map) this.drawMap();
	}

	// prepare fits a canvas to its box in the pixels of the screen.
	prepare(box) {
		const canvas = box.querySelector("canvas"), ratio = pixelRatio();
		const width = canvas.clientWidth, height = canvas.clientHeight;
		if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
			canvas.width = Math.round(width * ratio);
			canvas.height = Math.round(height * ratio);
		}
		const context = canvas.getContext("2d");
		context.setTransform(ratio, 0, 0, ratio, 0, 0);
		context.clearRect(0, 0, width, height);
		context.font = "12px system-ui, 'DejaVu Sans', sans-serif";
		return { context, width, height };
	}

	// frame returns where the picture of a box lies within it.
	frame(width, height) { return { left: 64, right: width - 8, top: this.section.failed.length ? 18 : 8, bottom: height - 22 }; }

	x(f, ns) { return f.left + (ns - this.from) / (this.to - this.from) * (f.right - f.left); }

	ns(f, x) { return this.from + (x - f.left) / (f.right - f.left) * (this.to - this.from); }

	// bucket returns the number of the bucket at a time.
	bucket(ns) {
		let lo = 0, hi = this.times.length;
		while (hi - lo > 1) {
			const mid = lo + hi >> 1;
			if (this.times[mid] <= ns) lo = mid; else hi = mid;
		}
		return lo;
	}

	shown() {
		const all = [];
		for (const s of this.series) for (const what of ["allocated", "reserved"]) {
			if (s.drawn && s[what] && s.curves[what].length) all.push({ s, what, curve: s.curves[what] });
		}
		return all;
	}

	drawChart() {
		const { context, width, height } = this.prepare(this.chart), f = this.frame(width, height);
		const lo = this.bucket(this.from), hi = this.bucket(this.to), shown = this.shown();
		const most = Math.max(1, ...shown.map(c => c.curve.range(lo, hi)[1])), { limit } = this.section;
		const top = Math.max(most, limit < 1.5 * most ? limit : 0) * 1.06;
		this.grid(context, f, width, height, nice(top, Math.max(2, height / 60), true), top);
		const y = n => f.bottom - n / top * (f.bottom - f.top);
		context.save();
		context.beginPath();
		context.rect(f.left, f.top - 2, f.right - f.left, f.bottom - f.top + 3);
		context.clip();
		for (const { s, what, curve } of shown) this.line(context, f, y, s, what, curve);
		for (const { s, what, curve } of shown) if (s.died !== null && what === "reserved") this.end(context, f, y, s.died, curve);
		context.restore();
		if (limit && limit <= top) this.limit(context, f, y(limit));
		this.failures(context, f);
		this.mark(context, f);
	}

	// end marks where a curve ends because memory ran out.
	end(context, f, y, ns, curve) {
		context.fillStyle = this.colors.alarm;
		context.beginPath();
		context.arc(this.x(f, ns), y(curve.range(curve.length - 1, curve.length - 1)[1]), 4, 0, 7);
		context.fill();
	}

	// limit draws the capacity of the GPU.
	limit(context, f, y) {
		context.strokeStyle = context.fillStyle = this.colors.alarm;
		[context.lineWidth, context.textAlign, context.textBaseline] = [1, "left", "bottom"];
		context.setLineDash([6, 4]);
		context.beginPath();
		context.moveTo(f.left, y);
		context.lineTo(f.right, y);
		context.stroke();
		context.setLineDash([]);
		context.fillText("capacity " + bytes(this.section.limit), f.left + 4, y - 2);
	}

	// failures draws when requests failed while the trace was recorded.
	failures(context, f) {
		context.strokeStyle = context.fillStyle = this.colors.alarm;
		[context.lineWidth, context.textAlign, context.textBaseline] = [1.5, "right", "bottom"];
		let free = f.right;
		for (const ns of this.section.failed.toReversed()) {
			const x = this.x(f, ns), right = Math.min(x + 12, f.right);
			if (ns < this.from || ns > this.to) continue;
			context.beginPath();
			context.moveTo(x, f.top - 3);
			context.lineTo(x, f.bottom);
			context.stroke();
			if (right > free) continue;
			context.fillText("OOM", right, f.top - 4);
			free = right - 34;
		}
	}

	// line draws a curve, for each pixel from the least to the most; what is allocated is filled.
	line(context, f, y, s, what, curve) {
		context.strokeStyle = context.fillStyle = this.colors.s[s.color];
		context.lineWidth = what === "reserved" ? 1.6 : 1;
		context.lineJoin = "round";
		context.beginPath();
		const end = curve.length - 1;
		let last = null, right = f.left;
		for (let x = f.left; x <= f.right; x++) {
			const lo = this.bucket(this.ns(f, x)), hi = Math.max(lo, this.bucket(this.ns(f, x + 1)) - 1);
			if (lo > end) break;
			right = x;
			const [least, most] = curve.range(lo, hi);
			if (last === null) context.moveTo(x, y(least));
			else context.lineTo(x, y(last));
			if (most !== last || least !== last) {
				context.lineTo(x, y(last !== null && Math.abs(last - least) > Math.abs(last - most) ? most : least));
				context.lineTo(x, y(last !== null && Math.abs(last - least) > Math.abs(last - most) ? least : most));
				last = curve.range(hi, hi)[1];
			}
		}
		context.stroke();
		if (what === "allocated") {
			context.lineTo(right, y(0));
			context.lineTo(f.left, y(0));
			context.globalAlpha = .14;
			context.fill();
			context.globalAlpha = 1;
		}
	}

	grid(context, f, width, height, step, top) {
		context.strokeStyle = this.colors.line;
		context.fillStyle = this.colors.dim;
		context.lineWidth = 1;
		context.textAlign = "right";
		context.textBaseline = "middle";
		for (let n = 0; n <= top; n += step) {
			const at = Math.round(f.bottom - n / top * (f.bottom - f.top)) + .5;
			context.beginPath();
			context.moveTo(f.left, at);
			context.lineTo(f.right, at);
			context.stroke();
			context.fillText(bytes(n), f.left - 6, at);
		}
		this.axis(context, f);
	}

	axis(context, f) {
		context.fillStyle = this.colors.dim;
		context.textBaseline = "top";
		context.textAlign = "center";
		const span = this.to - this.from, step = nice(span, Math.max(2, (f.right - f.left) / 90));
		for (let n = Math.ceil(this.from / step) * step; n <= this.to; n += step) {
			const x = this.x(f, n);
			if (x > f.right - 20 && x < f.right + 1) context.textAlign = "right";
			context.fillText(time(n, step), Math.min(x, f.right), f.bottom + 6);
		}
	}

	// mark draws the cursor and the stretch that is being chosen.
	mark(context, f) {
		if (this.chosen) {
			const a = this.x(f, this.chosen[0]), b = this.x(f, this.chosen[1]);
			context.globalAlpha = .16;
			context.fillStyle = this.colors.accent;
			context.fillRect(Math.min(a, b), f.top, Math.abs(b - a), f.bottom - f.top);
			context.globalAlpha = 1;
		}
		if (this.cursor === null || this.cursor < this.from || this.cursor > this.to) return;
		const x = Math.round(this.x(f, this.cursor)) + .5;
		context.strokeStyle = this.colors.ink;
		context.globalAlpha = .6;
		context.lineWidth = 1;
		context.beginPath();
		context.moveTo(x, f.top);
		context.lineTo(x, f.bottom);
		context.stroke();
		context.globalAlpha = 1;
	}

	// drawStrip draws all of the time in little, and which part of it is shown.
	drawStrip() {
		const { context, width, height } = this.prepare(this.strip), left = 64, right = width - 8, shown = this.shown();
		const top = Math.max(1, ...shown.map(c => c.curve.range(0, c.curve.length - 1)[1]));
		for (const { s, what, curve } of shown) {
			context.strokeStyle = this.colors.s[s.color];
			context.globalAlpha = what === "reserved" ? .9 : .4;
			context.beginPath();
			for (let x = left; x <= right; x++) {
				const at = n => (n - left) / (right - left) * this.span;
				const lo = this.bucket(at(x)), hi = Math.max(lo, this.bucket(at(x + 1)) - 1);
				if (lo >= curve.length) break;
				context.lineTo(x, height - 2 - curve.range(lo, hi)[1] / top * (height - 6));
			}
			context.stroke();
		}
		context.globalAlpha = 1;
		const a = left + this.from / this.span * (right - left), b = left + this.to / this.span * (right - left);
		context.fillStyle = this.colors.paper;
		context.globalAlpha = .7;
		context.fillRect(left, 0, a - left, height);
		context.fillRect(b, 0, right - b, height);
		context.globalAlpha = 1;
		context.strokeStyle = this.colors.dim;
		context.strokeRect(Math.round(a) + .5, .5, Math.max(2, Math.round(b - a) - 1), height - 1);
	}

	drawMap() {
		const { context, width, height } = this.prepare(this.map), f = this.frame(width, height), map = this.section.map;
		context.strokeStyle = this.colors.line;
		context.strokeRect(f.left - .5, f.top - .5, f.right - f.left + 1, f.bottom - f.top + 1);
		const first = this.from / map.span * map.columns, last = Math.min(this.to / map.span * map.columns, map.columns);
		const right = Math.min(f.right, this.x(f, map.span));
		context.imageSmoothingEnabled = last - first > (right - f.left) * pixelRatio();
		if (last > first) context.drawImage(this.picture, first, 0, last - first, map.lines, f.left, f.top, right - f.left, f.bottom - f.top);
		context.fillStyle = this.colors.dim;
		context.textAlign = "right";
		context.textBaseline = "middle";
		const step = nice(map.total, Math.max(2, height / 60), true);
		for (let n = 0; n <= map.total; n += step) context.fillText(bytes(n), f.left - 6, f.bottom - n / map.total * (f.bottom - f.top));
		this.axis(context, f);
		this.mark(context, f);
	}

	// set shows the stretch of time between two moments.
	set(from, to) {
		const least = Math.min(this.span, Math.max(this.span / 1e7, 10));
		const span = Math.min(Math.max(to - from, least), this.span);
		const middle = (from + to) / 2;
		this.from = Math.min(Math.max(middle - span / 2, 0), this.span - span);
		this.to = this.from + span;
		this.draw();
	}

	zoom(factor, at = (this.from + this.to) / 2) {
		this.set(at - (at - this.from) * factor, at + (this.to - at) * factor);
	}

	move(share) {
		const by = Math.min(Math.max(share * (this.to - this.from), -this.from), this.span - this.to);
		this.set(this.from + by, this.to + by);
	}

	act(what) {
		switch (what) {
		case "left": return this.move(-.25);
		case "right": return this.move(.25);
		case "in": return this.zoom(.5, this.cursor !== null && this.cursor > this.from && this.cursor < this.to ? this.cursor : undefined);
		case "out": return this.zoom(2);
		case "all": return this.set(0, this.span);
		}
	}

	// point moves the cursor and says what is there: in the chart for each curve, in the map for the address.
	point(box, ns, p) {
		this.cursor = ns;
		tell(this, box, p);
		this.draw();
	}

	leave() {
		this.cursor = null;
		for (const box of [this.chart, this.map]) if (box) box.querySelector(".tip").hidden = true;
		this.status.textContent = "";
		this.draw();
	}
}
