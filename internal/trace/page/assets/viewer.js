// Viewer shows the tensors of a GPU: two plots of the same stretch of time, and what lives at a moment.
class Viewer extends Stretch {
	constructor(element) {
		super();
		this.element = element;
		this.name = element.dataset.name;
		this.axis = "rows";
		this.by = "tag";
		this.order = "group";
		this.loaded = [];
		this.listeners = [];
		for (const select of element.querySelectorAll("[data-choose]")) select.oninput = () => {
			this.choose(select.dataset.choose, select.value);
			if (select.dataset.title) select.value = "";
		};
		for (const button of element.querySelectorAll("[data-do]")) button.onclick = () => this.act(button.dataset.do);
		this.status = element.querySelector(".now");
		this.strip = element.querySelector(".strip canvas");
		this.words = ""; // that are searched for
		this.ready = this.show(0);
		const panes = element.querySelector(".panes");
		if (panes) this.ready = this.ready.then(() => new Beside(this, panes).load());
	}

	// part returns a part of the recording, which is unpacked when it is first asked for.
	part(number) {
		const unpack = () => unpacker(this.element.querySelectorAll("script.part")[number].textContent);
		return this.loaded[number] ||= unpack().then(unpacked => new Tensors(unpacked));
	}

	// show shows a part of the recording, at its peak.
	async show(number) {
		this.tensors = await this.part(number);
		this.number = number;
		const menu = this.element.querySelector("[data-choose=part]");
		if (menu) menu.value = number;
		[this.hover, this.pinned, this.matches] = [null, null, this.words ? matching(this.tensors, this.words) : null];
		this.moment = this.tensors.peak;
		this.slow = this.tensors.length > 2e5;
		[this.from, this.to] = [0, this.span];
		if (!this.plots) this.plot();
		this.plots[1].box.hidden = this.element.querySelector(".where").hidden = !this.tensors.addresses.length;
		for (const plot of this.plots) plot.whole();
		this.offer();
		this.restyle();
		this.rasterAll(4); // at once, so that no pixel stands for a tensor of another part
		this.describe();
	}

	plot() {
		this.plots = ["stack", "map"].map(fill => new Plot(this, this.element.querySelector(".plot." + fill), fill));
		for (const plot of this.plots) listen(this, plot);
		listenStrip(this, this.strip);
		this.flame = new Flame(this, this.element.querySelector(".flame"));
		new ResizeObserver(() => this.draw()).observe(this.plots[0].box);
	}

	// offer fills the menus of moments.
	offer() {
		const { ooms, sections, marks } = this.tensors.meta;
		const fill = (name, list, text) => {
			const select = this.element.querySelector(`[data-choose=${name}]`);
			select.hidden = !list.length;
			select.replaceChildren(new Option(select.dataset.title, ""), ...list.map((item, i) => new Option(text(item, i), i)));
		};
		fill("oom", ooms, (o, i) => `OOM ${i}: ${bytes(o.size)}`);
		fill("iteration", sections, (s, i) => `Iteration ${i}`);
		fill("mark", marks, m => m.text);
		this.element.querySelector("[data-do=oom]").hidden = !ooms.length;
	}

	choose(what, value) {
		switch (what) {
		case "part": return this.show(Number(value));
		case "colour": this.by = value; return this.restyle();
		case "order": this.order = value; return this.restyle();
		case "axis": return this.setAxis(value);
		case "search": return this.search(value);
		case "flame":
			this.flame.over = value === "range";
			return this.flame.show();
		}
		const { ooms, sections, marks } = this.tensors.meta;
		if (value === "") return;
		if (what === "oom") this.failure(ooms[value]);
		if (what === "mark") this.jump(marks[value].at, this.unitOf(marks[value]));
		if (what === "iteration") this.showSection(sections[value]);
	}

	restyle() {
		this.colors = new Colors(this.tensors, this.by, this.matches);
		const grouped = this.order === "group" && this.by !== "tensor", { of, list } = this.colors.groups;
		this.sweep = grouped ? new Sweep(this.tensors, of, list.length) : new Sweep(this.tensors, new Int32Array(of.length), 1);
		this.keys();
		this.flame.draw();
		this.beside?.restyle();
		this.draw();
	}

	// keys makes the legend.
	keys() {
		const box = this.element.querySelector(".keys"), seen = new Set(this.tensors.kinds.length < 1e5 ? this.tensors.kinds : []);
		const used = new Set([...seen].map(k => this.colors.groups.of[k]));
		box.replaceChildren();
		const groups = this.colors.groups.list.filter((_, i) => !seen.size || used.has(i));
		if (this.by !== "tensor") box.append(...groups.map(g => patch(g.css, g.name)));
		else box.append(make("span", "key", "each tensor has a colour"));
		if (this.tensors.mostReserved) box.append(patch("var(--spare)", "reserved, not in use"));
		const { merged } = this.tensors.meta;
		if (merged) box.append(make("span", "key", `the ${merged.toLocaleString("en")} smallest tensors are one band`));
	}

	setAxis(axis) {
		const from = this.position(this.from), to = this.position(this.to), all = this.from === 0 && this.to === this.span;
		this.axis = axis;
		if (all) this.set(0, this.span);
		else this.set(this.unit(from), this.unit(to));
	}

	set(from, to) {
		const least = 4 * (this.counts ? 1 : this.tensors.meta.tick);
		const span = clamp(to - from, Math.min(least, this.span), this.span);
		this.from = clamp((from + to - span) / 2, 0, this.span - span);
		this.to = this.from + span;
		this.draw();
	}

	zoom(factor, at = (this.from + this.to) / 2) { this.set(at - (at - this.from) * factor, at + (this.to - at) * factor); }

	move(share) {
		const by = clamp(share * (this.to - this.from), -this.from, this.span - this.to);
		this.set(this.from + by, this.to + by);
	}

	act(what) {
		const { ooms } = this.tensors.meta, moment = this.unit(this.moment);
		switch (what) {
		case "left": return this.move(-.25);
		case "right": return this.move(.25);
		case "in": return this.zoom(.5, moment > this.from && moment < this.to ? moment : undefined);
		case "out": return this.zoom(2);
		case "all":
			for (const plot of this.plots) plot.whole();
			return this.set(0, this.span);
		case "fit": return this.plots[0].setBytes(0, 1.04 * this.most());
		case "peak": return this.jump(this.tensors.peak, this.unit(this.tensors.peak));
		case "oom": return ooms.length && this.failure(ooms.at(-1));
		}
	}

	// most returns the most bytes that live in the stretch that is shown.
	most() { return Math.max(1, this.tensors.live[this.peakOf(this.position(this.from), this.position(this.to))]); }

	// peakOf returns the position with the most live bytes from one to another, the first of several.
	peakOf(from, to) {
		let peak = Math.min(from, to);
		for (let p = from + 1; p <= to; p++) if (this.tensors.live[p] > this.tensors.live[peak]) peak = p;
		return peak;
	}

	// jump makes a position the moment that the page describes, and shows what is around it.
	jump(position, unit) {
		const span = this.to - this.from === this.span ? this.span / 8 : this.to - this.from;
		this.pinned = null;
		this.set(clamp(unit - span / 2, 0, this.span - span), clamp(unit - span / 2, 0, this.span - span) + span);
		this.setMoment(position);
	}

	failure(oom) {
		this.jump(oom.at, this.unitOf(oom));
		this.status.textContent = `Out of memory at row ${oom.row.toLocaleString("en")}: ${exact(oom.size)} asked, ${oom.free ? `${bytes(oom.free)} free on the device, ` : ""}${oom.stack}`;
	}

	// showSection shows an iteration, and makes its peak the moment.
	showSection(section) {
		this.pinned = null;
		this.set(this.unitOf(section.from), this.unitOf(section.to));
		this.setMoment(this.peakOf(section.from.at + 1, section.to.at));
	}

	// iterate shows the iteration after the one in the middle, or before it.
	iterate(by) {
		const all = this.tensors.meta.sections, middle = this.position((this.from + this.to) / 2);
		const now = all.findLastIndex(s => s.from.at <= middle), next = all[clamp(now + by, 0, all.length - 1)];
		if (next) this.showSection(next);
	}

	// step moves the moment by allocations and frees.
	step(by) {
		this.setMoment(clamp(this.moment + by, 0, this.tensors.events));
		const at = this.unit(this.moment);
		if (at < this.from || at > this.to) this.jump(this.moment, at);
	}

	// climb chooses the tensor above or below the chosen one.
	climb(by) {
		this.sweep.start(this.moment);
		const order = this.sweep.order(), now = this.pinned ? order.indexOf(this.pinned.tensor) : -1;
		if (!order.length) return;
		this.pinned = { tensor: order[now < 0 ? (by > 0 ? 0 : order.length - 1) : clamp(now + by, 0, order.length - 1)], position: this.moment };
		this.describe();
		this.draw();
	}

	point(plot, p) {
		this.hover = plot.pick(p.x, p.y);
		this.overlay();
		tip(this, plot, p);
	}

	pin() {
		this.pinned = this.hover.tensor >= 0 ? this.hover : null;
		this.setMoment(this.hover.position);
	}

	unpin() {
		this.pinned = null;
		this.leave();
		this.describe();
	}

	leave() {
		this.hover = null;
		for (const plot of this.plots) plot.tip.hidden = true;
		this.overlay();
	}

	setMoment(position) {
		this.moment = position;
		this.status.textContent = "";
		this.describe();
		this.overlay();
	}

	describe() {
		describeMoment(this);
		describeTensor(this);
		this.flame.show();
		for (const listener of this.listeners) listener();
	}

	// search highlights the tensors whose tag, stack, size or stream has a text.
	search(text) {
		const words = text.trim().toLowerCase();
		this.highlight(words && matching(this.tensors, words), words);
	}

	// highlight greys all kinds but those that match; all, if matches is not a list. The words are those that were searched for.
	highlight(matches, words = "") {
		this.matches = matches || null;
		this.words = words;
		this.colors.matches = this.matches;
		for (const plot of this.plots) if (!plot.box.hidden) plot.paint();
		this.overlay();
		this.beside?.restyle();
		describeMatches(this);
	}

	// draw finds anew what is shown. If that takes long, it first shows a coarse picture.
	draw() {
		if (this.waiting) return;
		this.waiting = requestAnimationFrame(() => {
			this.waiting = 0;
			clearTimeout(this.finer);
			const fine = () => {
				const begun = performance.now();
				this.rasterAll(1);
				this.flame.show();
				this.beside?.follow();
				this.slow = performance.now() - begun > 50;
				this.overlay();
			};
			if (!this.slow) return fine();
			this.rasterAll(4);
			this.overlay();
			this.finer = setTimeout(fine, 150);
		});
	}

	rasterAll(step) { for (const plot of this.plots) if (!plot.box.hidden && plot.canvas.clientWidth) plot.raster(step); }

	// redraw draws everything in the colours of now.
	redraw() {
		this.restyle();
		this.rasterAll(1);
		for (const plot of this.plots) if (!plot.box.hidden) plot.draw();
		this.drawStrip();
		describeMoment(this);
	}

	// overlay draws the pictures with what is above them.
	overlay() {
		if (this.over) return;
		this.over = requestAnimationFrame(() => {
			this.over = 0;
			this.drawn ||= performance.now(); // when the page was first seen
			for (const plot of this.plots) if (!plot.box.hidden) plot.draw();
			this.drawStrip();
		});
	}

	timeAxis(c, f) {
		const { counts } = this, step = Math.max(nice(this.to - this.from, Math.max(2, (f.right - f.left) / 90)), counts ? 1 : 0);
		c.fillStyle = this.colors.dim;
		[c.textBaseline, c.textAlign] = ["top", "center"];
		const first = Math.ceil(this.from / step) * step;
		for (let n = first; n <= this.to; n += step) {
			const text = counts ? (n === first ? "row " : "") + n.toLocaleString("en") : time(n, step), half = c.measureText(text).width / 2, x = this.x(f, n);
			c.fillRect(Math.round(x), f.bottom, 1, 4);
			c.fillText(text, clamp(x, f.left + half, f.right - half), f.bottom + 6);
		}
	}

	// drawStrip draws all of the time in little, and which part of it is shown.
	drawStrip() {
		const { strip, tensors } = this, ratio = pixelRatio(), f = this.plots[0].frame;
		const width = strip.clientWidth, height = strip.clientHeight;
		if (!width) return;
		[strip.width, strip.height] = [Math.round(width * ratio), Math.round(height * ratio)];
		const c = strip.getContext("2d"), top = this.plots[0].own, span = this.span, wide = f.right - f.left;
		c.setTransform(ratio, 0, 0, ratio, 0, 0);
		c.fillStyle = this.colors.accent;
		c.globalAlpha = .5;
		for (let x = 0, from = 0; x < wide; x++) {
			const to = this.position((x + 1) / wide * span);
			let most = tensors.live[from];
			for (let p = from; p <= to; p++) most = Math.max(most, tensors.live[p]);
			from = to;
			c.fillRect(f.left + x, height - most / top * height, 1, most / top * height);
		}
		const a = f.left + this.from / span * wide, b = f.left + this.to / span * wide;
		c.fillStyle = this.colors.paper;
		c.globalAlpha = .75;
		c.fillRect(f.left, 0, a - f.left, height);
		c.fillRect(b, 0, f.right - b, height);
		c.globalAlpha = 1;
		c.strokeStyle = this.colors.dim;
		c.strokeRect(Math.round(a) + .5, .5, Math.max(2, Math.round(b - a) - 1), height - 1);
	}
}

// matching returns which kinds of tensors have a text in lower case in their tag, their stack or as their size.
function matching(tensors, words) {
	const { kind, meta } = tensors, has = list => list.map(t => t.toLowerCase().includes(words));
	const frames = has(meta.frames), labels = has(meta.labels.map(l => l.name + " " + l.rule));
	const stacks = meta.stacks.map(s => s.frames.some(f => frames[f]) || s.short.toLowerCase().includes(words));
	return Uint8Array.from(kind.size, (n, k) => stacks[kind.stack[k]] || labels[kind.label[k]] || bytes(n).toLowerCase() === words);
}

function patch(css, text) {
	const swatch = make("span", "patch");
	swatch.style.background = css;
	return make("span", "key", swatch, text);
}
