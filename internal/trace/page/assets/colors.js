// Colors gives the tensors of a viewer their groups and colours. Each colour has eight shades, so that neighbours can be told apart.
class Colors {
	constructor(tensors, by, matches, like) {
		this.tensors = tensors;
		this.matches = matches; // by kind; null if all match
		// like is the colours of other tensors, of which those groups that have the same name have the same colour
		const style = getComputedStyle(document.documentElement), color = name => style.getPropertyValue("--" + name).trim();
		for (const name of ["paper", "ink", "dim", "line", "soft", "accent", "alarm"]) this[name] = color(name);
		const rest = color("rest"), dark = parseInt(this.paper.slice(1, 3), 16) < 128;
		this.groups = by === "stack" ? stackGroups(tensors, like) : labelGroups(tensors, like);
		this.each = by === "tensor";
		for (const g of this.groups.list) g.css = g.color < 0 ? rest : color("c" + g.color);
		this.palette = Array.from({ length: 12 }, (_, i) => color("c" + i)).map(css => shades(css, dark));
		this.shades = this.groups.list.map(g => shades(g.css, dark));
		this.faint = shades(color("faint"), dark);
		this.idle = shades(color("spare"), dark)[unchanged];
	}

	// of returns the colour of a tensor and that of its edge, as the pixels of a canvas.
	of(i) {
		const kind = this.tensors.kinds[i], shade = Math.imul(i, 0x9e3779b1) >>> 29;
		if (this.matches && !this.matches[kind]) return this.faint[shade];
		if (this.each) return this.palette[(Math.imul(i + 1, 0x85ebca6b) >>> 16) % this.palette.length][shade];
		return this.shades[this.groups.of[kind]][shade];
	}
}

// labelGroups makes a group of each tag, in the order of the labels.
function labelGroups(tensors, like) {
	const { labels } = tensors.meta, names = [...new Set(labels.toSorted((a, b) => a.rank - b.rank).map(l => l.name))];
	const known = new Map(like?.groups.list.map(g => [g.name, g.color]));
	const list = names.map(name => ({ name, color: known.get(name) ?? labels.find(l => l.name === name).color }));
	return { list, of: Int32Array.from(tensors.kind.label, l => names.indexOf(labels[l].name)) };
}

const mostStacks = 11;

// stackGroups makes a group of each of the stacks that hold most at the peak, and one of the others.
function stackGroups(tensors, like) {
	if (like) {
		const { list } = like.groups, at = new Map(list.map((g, i) => [g.name, i]));
		return { list, of: Int32Array.from(tensors.kind.stack, s => at.get(tensors.meta.stacks[s].short) ?? list.length - 1) };
	}
	const sums = new Float64Array(tensors.meta.stacks.length);
	for (const i of tensors.alive(tensors.peak)) sums[tensors.kind.stack[tensors.kinds[i]]] += tensors.sizes[i];
	const order = [...sums.keys()].filter(s => sums[s] > 0).sort((a, b) => sums[b] - sums[a] || a - b).slice(0, mostStacks);
	const list = order.map((s, color) => ({ name: tensors.meta.stacks[s].short, color }));
	list.push({ name: "other stacks", color: -1 });
	return { list, of: Int32Array.from(tensors.kind.stack, s => (order.indexOf(s) + list.length) % list.length) };
}

const unchanged = 3; // the shade that is the colour itself

// shades returns eight shades of a colour "#rrggbb", each with the colour of its edge.
function shades(css, dark) {
	const rgb = [1, 3, 5].map(at => parseInt(css.slice(at, at + 2), 16));
	const pixel = factor => {
		const [r, g, b] = rgb.map(x => Math.round(clamp(factor < 1 ? x * factor : x + (255 - x) * (factor - 1), 0, 255)));
		return (0xff000000 | b << 16 | g << 8 | r) >>> 0;
	};
	return Array.from({ length: 8 }, (_, i) => [pixel(1 + (i - unchanged) * .035), pixel(dark ? .6 : .68)]);
}
