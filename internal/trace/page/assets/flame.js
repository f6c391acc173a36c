// Flame is a flame graph of what lives at the moment or over the range that is shown, the outermost frame at the top.
class Flame {
	constructor(viewer, box) {
		this.viewer = viewer;
		this.box = box;
		this.over = false; // the range
		this.canvas = box.querySelector("canvas");
		this.tip = box.querySelector(".tip");
		this.canvas.onpointermove = event => this.point(event);
		this.canvas.onpointerleave = () => { this.tip.hidden = true; };
		this.canvas.onclick = event => this.pick(event);
		new ResizeObserver(() => this.draw()).observe(box);
	}

	// show adds up the stacks of what lives, unless they are shown already.
	show() {
		const { viewer } = this, { tensors, moment, from, to, axis } = viewer, { stack, label, size } = tensors.kind;
		const shown = this.over ? [tensors, axis, from, to] : [tensors, moment];
		if (shown.length === this.shown?.length && shown.every((x, i) => x === this.shown[i])) return;
		this.shown = shown;
		this.span = this.over ? to - from : 1;
		this.root = { name: "all", weight: 0, children: new Map() };
		const sums = new Map(), weights = this.over ? this.weighRange() : this.weighMoment();
		for (let k = 0; k < weights.length; k++) if (weights[k]) {
			const key = tensors.meta.stacks[stack[k]].frames.length ? stack[k] : label[k] + " " + size[k], sum = sums.get(key);
			sums.set(key, { kind: k, weight: weights[k] + (sum ? sum.weight : 0) });
		}
		for (const { kind, weight } of sums.values()) this.add(kind, weight);
		this.zoomed = this.root;
		describeFlame(viewer);
		this.draw();
	}

	// add adds a kind of tensors to the frames of its stack.
	add(kind, weight) {
		const { tensors } = this.viewer, tag = tensors.meta.labels[tensors.kind.label[kind]].name;
		const frames = tensors.stacked ? this.telling(kind) : [tag, "blocks of " + bytes(tensors.kind.size[kind])];
		if (!frames.length) frames.push("(no stack)", tag);
		let node = this.root;
		node.weight += weight;
		for (const name of frames) {
			if (!node.children.has(name)) node.children.set(name, { name, weight: 0, children: new Map() });
			node = node.children.get(name);
			node.weight += weight;
		}
	}

	// weighMoment returns the bytes that live at the moment, by kind.
	weighMoment() {
		const { tensors, moment } = this.viewer, weights = new Float64Array(tensors.kind.size.length);
		for (const i of tensors.alive(moment)) weights[tensors.kinds[i]] += tensors.sizes[i];
		return weights;
	}

	// weighRange returns the bytes times how long they live in the range that is shown, in units of the axis, by kind.
	weighRange() {
		const { viewer } = this, { tensors, from, to, span } = viewer, { births, deaths, kinds, sizes } = tensors;
		const weights = new Float64Array(tensors.kind.size.length), born = upTo(births, viewer.position(to));
		for (let i = 0; i < born; i++) {
			const end = deaths[i] === never ? span : viewer.unit(deaths[i] + 1);
			if (end > from) weights[kinds[i]] += sizes[i] * Math.max(0, Math.min(end, to) - Math.max(viewer.unit(births[i] + 1), from));
		}
		return weights;
	}

	// telling returns the frames of a kind's stack, the outermost first, without those that only lead from module to module.
	telling(kind) {
		const { meta, kind: { stack } } = this.viewer.tensors, { plumbing, frames, stacks } = meta;
		const all = stacks[stack[kind]].frames.toReversed(), some = all.filter(f => !plumbing.includes(f));
		return (some.length ? some : all).map(f => frames[f]);
	}

	// mean returns the bytes of a node: those that live at the moment, or in the mean of the range.
	mean(node) { return node.weight / this.span; }

	// lay places the boxes of a node: a chain of frames that call only each other is one box.
	lay(node, x, width, row) {
		const frames = [node.name];
		while (node.children.size === 1 && [...node.children.values()][0].weight === node.weight) {
			node = [...node.children.values()][0];
			frames.push(node.name);
		}
		this.boxes.push({ frames, node, x, width, row });
		this.rows = Math.max(this.rows, row + 1);
		let left = x;
		for (const child of [...node.children.values()].sort((a, b) => b.weight - a.weight)) {
			const wide = width * child.weight / node.weight;
			if (wide >= 1.5) this.lay(child, left, wide, row + 1);
			left += wide;
		}
	}

	draw() {
		const width = this.canvas.clientWidth, ratio = pixelRatio(), height = 19;
		if (!this.root || !width) return;
		this.boxes = [];
		this.rows = 0;
		this.lay(this.zoomed, 0, width, 0);
		this.canvas.style.height = this.rows * height + "px";
		[this.canvas.width, this.canvas.height] = [Math.round(width * ratio), Math.round(this.rows * height * ratio)];
		const c = this.canvas.getContext("2d"), { colors } = this.viewer;
		c.setTransform(ratio, 0, 0, ratio, 0, 0);
		c.font = "12px system-ui, 'DejaVu Sans', sans-serif";
		c.textBaseline = "middle";
		const warm = getComputedStyle(document.documentElement);
		for (const b of this.boxes) {
			c.fillStyle = warm.getPropertyValue("--flame" + hash(b.frames.at(-1)) % 4);
			c.fillRect(b.x, b.row * height, Math.max(b.width - 1, 1), height - 1);
			if (b.width < 30) continue;
			c.fillStyle = colors.ink;
			c.fillText(fit(c, `${shortFrame(b.frames.at(-1))} ${bytes(this.mean(b.node))}`, b.width - 8), b.x + 4, b.row * height + height / 2);
		}
	}

	find(event) {
		const rect = this.canvas.getBoundingClientRect(), x = event.clientX - rect.left, row = Math.floor((event.clientY - rect.top) / 19);
		return this.boxes?.find(b => b.row === row && x >= b.x && x < b.x + b.width);
	}

	point(event) {
		const box = this.find(event), rect = this.box.getBoundingClientRect();
		this.tip.hidden = !box;
		if (!box) return;
		const share = (100 * box.node.weight / (this.root.weight || 1)).toFixed(1), many = box.frames.length > 12;
		const frames = many ? [...box.frames.slice(0, 6), "…", ...box.frames.slice(-5)] : box.frames;
		this.tip.replaceChildren(make("b", "", `${this.amount(box.node)}, ${share}%`), ...frames.map(f => make("div", "", f)));
		this.tip.style.left = clamp(event.clientX - rect.left + 12, 0, Math.max(0, rect.width - this.tip.offsetWidth)) + "px";
		this.tip.style.top = event.clientY - rect.top + 16 + "px";
	}

	// amount says how much a node is.
	amount(node) {
		if (!this.over) return bytes(node.weight);
		const whole = this.viewer.counts ? `${bytes(node.weight)}·rows` : `${bytes(node.weight / 1e9)}·s`;
		return `${bytes(this.mean(node))} on average, ${whole}`;
	}

	// pick widens a box and highlights its tensors; the box that is widest already gives back all.
	pick(event) {
		const box = this.find(event), { viewer } = this;
		if (!box) return;
		const { tensors } = viewer, back = box.row === 0, frame = box.frames.at(-1);
		this.zoomed = back ? this.root : box.node;
		this.draw();
		if (back || !tensors.stacked) return viewer.highlight(null);
		const number = tensors.meta.frames.indexOf(frame), has = tensors.meta.stacks.map(s => s.frames.includes(number));
		viewer.highlight(Uint8Array.from(tensors.kind.stack, s => has[s]));
	}
}

function hash(text) {
	let h = 0;
	for (let i = 0; i < text.length; i++) h = Math.imul(h, 31) + text.charCodeAt(i) >>> 0;
	return h;
}

// shortFrame returns "name (/folder/file.py:12)" as "file.py:12 name".
function shortFrame(frame) {
	const parts = /^(.*) \((?:.*\/)?([^/]+:\d+)\)$/.exec(frame);
	return parts && !parts[2].startsWith("??") ? `${parts[2]} ${parts[1]}` : frame.replace(/ \(\?\?:0\)$/, "");
}

function fit(c, text, width) {
	if (c.measureText(text).width <= width) return text;
	let n = Math.floor(text.length * width / c.measureText(text).width);
	while (n > 0 && c.measureText(text.slice(0, n) + "…").width > width) n--;
	return n > 0 ? text.slice(0, n) + "…" : "";
}
