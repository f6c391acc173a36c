// Beside shows the GPUs of a recording in little, side by side: the same stretch of time and the same moment of each, under one scale.
class Beside {
	constructor(viewer, element) {
		this.viewer = viewer;
		this.element = element;
	}

	async load() {
		const { viewer } = this, boxes = [...this.element.querySelectorAll(".pane")];
		this.panes = await Promise.all(boxes.map(async box => new Pane(viewer, box, await viewer.part(Number(box.dataset.part)))));
		const most = Math.max(...this.panes.map(p => p.plot.own));
		for (const pane of this.panes) {
			pane.common = most;
			pane.plot.whole();
			pane.box.onclick = () => this.choose(pane);
		}
		this.slow = this.panes.reduce((sum, p) => sum + p.tensors.length, 0) > 2e5;
		viewer.beside = this;
		viewer.listeners.push(() => this.mark());
		new ResizeObserver(() => this.follow()).observe(this.element);
		this.restyle();
		this.mark();
	}

	// choose shows a GPU in the large pictures, at the moment and in the stretch that its pane shows.
	async choose(pane) {
		const { from, to, moment } = pane;
		await this.viewer.show(pane.number);
		this.viewer.set(from, to);
		this.viewer.setMoment(moment);
	}

	// restyle gives all panes the colours of the large pictures.
	restyle() {
		for (const pane of this.panes) pane.restyle();
		this.follow();
	}

	// follow shows the stretch of the large pictures; a little later, if that takes long.
	follow() {
		clearTimeout(this.later);
		const draw = () => {
			for (const pane of this.panes) pane.follow();
		};
		if (this.slow) this.later = setTimeout(draw, 150);
		else draw();
	}

	// mark shows the moment, and what lives at it in each.
	mark() {
		for (const pane of this.panes) pane.mark();
		const names = this.panes.map(p => p.name), sums = this.panes.map(p => new Map(sumsAt(p, i => p.tensors.label(i).name)));
		const tags = [...new Set(sums.flatMap(s => [...s.keys()]))], of = tag => sums.map(s => s.get(tag)?.bytes ?? 0);
		tags.sort((a, b) => Math.max(...of(b)) - Math.max(...of(a)));
		const cell = (kind, text, scope) => {
			const c = make(kind, "", text);
			if (scope) c.scope = scope;
			c.title = text;
			return c;
		};
		const row = (name, list) => make("tr", "", cell("th", name, "row"), ...list.map(n => cell("td", bytes(n))));
		this.element.querySelector("thead").replaceChildren(make("tr", "", cell("th", "tag", "col"), ...names.map(n => cell("th", n, "col"))));
		const all = row("live", this.panes.map(p => p.tensors.live[p.moment]));
		this.element.querySelector("tbody").replaceChildren(all, ...tags.map(tag => row(tag, of(tag))));
	}
}

// Pane is one of the GPUs.
class Pane extends Stretch {
	constructor(viewer, box, tensors) {
		super();
		this.viewer = viewer;
		this.box = box;
		this.number = Number(box.dataset.part);
		this.name = box.querySelector(".title").textContent;
		this.tensors = tensors;
		[this.from, this.to, this.moment] = [0, 1, 0];
		this.plot = new Thumbnail(this, box, "stack");
	}

	get axis() { return this.viewer.axis; }

	restyle() {
		const { viewer, tensors } = this, { colors } = viewer;
		this.colors = new Colors(tensors, viewer.by, viewer.words ? matching(tensors, viewer.words) : null, colors);
		const grouped = viewer.order === "group" && viewer.by !== "tensor", { of, list } = this.colors.groups;
		this.sweep = grouped ? new Sweep(tensors, of, list.length) : new Sweep(tensors, new Int32Array(of.length), 1);
		this.box.ariaPressed = String(viewer.number === this.number);
	}

	follow() {
		[this.from, this.to] = [this.viewer.from, this.viewer.to].map(unit => clamp(this.across(unit), 0, this.span));
		this.to = Math.max(this.to, this.from + 1);
		if (!this.plot.canvas.clientWidth) return;
		this.plot.raster(1);
		this.plot.draw();
	}

	mark() {
		const { tensors, viewer } = this;
		this.moment = viewer.number === this.number ? viewer.moment : this.position(clamp(this.across(viewer.unit(viewer.moment)), 0, this.span));
		this.box.querySelector(".facts").textContent = `${bytes(tensors.live[this.moment])} live, peak ${bytes(tensors.live[tensors.peak])}`;
		this.plot.draw();
	}

	// across returns the unit of this GPU that goes with one of the GPU in the large pictures: the same time of the clock or, where rows
	// are counted, as far into the same iteration.
	across(unit) {
		const a = this.viewer.tensors, b = this.tensors;
		if (a === b) return unit;
		if (this.axis === "seconds") {
			const later = a.meta.startNS - b.meta.startNS;
			return later < b.span && -later < a.span ? unit + later : unit; // clocks that have nothing in common say nothing
		}
		const same = a.meta.sections.length === b.meta.sections.length, knots = t => {
			const all = same ? t.meta.sections : [];
			return [0, ...all.map(s => s.from.row), ...all.slice(-1).map(s => s.to.row), Math.max(t.meta.rows, 1)];
		};
		const from = knots(a), to = knots(b), i = clamp(from.findLastIndex(k => k <= unit), 0, from.length - 2);
		const wide = from[i + 1] - from[i];
		return to[i] + (wide ? (unit - from[i]) / wide * (to[i + 1] - to[i]) : 0);
	}
}

// Thumbnail is the picture of a pane.
class Thumbnail extends Plot {
	get frame() {
		const width = this.canvas.clientWidth, height = this.canvas.clientHeight;
		return { left: 0, right: width, top: 0, bottom: height, width, height };
	}

	draw() {
		const f = this.frame, ratio = pixelRatio(), { canvas, viewer } = this, { colors, tensors } = viewer;
		if (!f.width || !this.positions) return;
		[canvas.width, canvas.height] = [Math.round(f.width * ratio), Math.round(f.height * ratio)];
		const c = canvas.getContext("2d");
		c.setTransform(ratio, 0, 0, ratio, 0, 0);
		c.imageSmoothingEnabled = false;
		c.drawImage(this.picture, 0, 0, f.width, f.height);
		c.strokeStyle = colors.alarm;
		for (const oom of tensors.meta.ooms) {
			const x = Math.round(viewer.x(f, viewer.unitOf(oom))) + .5;
			if (x >= 0 && x <= f.width) line(c, x, 0, x, f.bottom);
		}
		const { capacity } = tensors.meta;
		c.setLineDash([6, 4]);
		if (capacity && capacity <= this.hi) line(c, 0, this.y(f, capacity), f.width, this.y(f, capacity));
		c.setLineDash([]);
		c.strokeStyle = colors.accent;
		const x = Math.round(viewer.middle(f, viewer.moment)) + .5;
		line(c, x, 0, x, f.bottom);
	}
}
