// compare fills the lists of what differs between the moments of two viewers, by tag and by stack.
function compare(box, a, b) {
	const update = () => {
		if (!a.plots || !b.plots) return;
		const most = Math.max(a.plots[0].own, b.plots[0].own);
		for (const v of [a, b]) if (v.common !== most) { v.common = most; v.plots[0].whole(); v.draw(); }
		const at = v => `${v.name} at ${moment(v.tensors, v.moment)}: ${bytes(v.tensors.live[v.moment])}`;
		const difference = signed(b.tensors.live[b.moment] - a.tensors.live[a.moment]);
		box.querySelector(".sides").textContent = `A: ${at(a)}. B: ${at(b)}. Difference: ${difference}. Choose other moments below.`;
		box.querySelector(".tags").replaceChildren(...rows(a, b, v => i => v.tensors.label(i).name));
		const stacked = a.tensors.stacked && b.tensors.stacked;
		const nameOf = v => i => stacked ? v.tensors.stack(i).group : "blocks of " + bytes(v.tensors.sizes[i]);
		box.querySelector(".stacks").replaceChildren(...rows(a, b, nameOf));
	};
	a.listeners.push(update);
	b.listeners.push(update);
	update();
}

const signed = n => (n > 0 ? "+" : n < 0 ? "−" : "±") + bytes(Math.abs(n));

// rows makes the rows of a table: each name with the bytes on both sides, the greatest difference first.
function rows(a, b, nameOf) {
	const all = new Map();
	for (const [side, v] of [[0, a], [1, b]]) for (const [name, sum] of sumsAt(v, nameOf(v))) {
		if (!all.has(name)) all.set(name, [0, 0]);
		all.get(name)[side] = sum.bytes;
	}
	const list = [...all].sort(([, p], [, q]) => Math.abs(q[1] - q[0]) - Math.abs(p[1] - p[0]) || q[0] - p[0]);
	return list.slice(0, mostRows).map(([name, [before, after]]) => {
		const head = make("th", "", name);
		head.scope = "row";
		head.title = name;
		const cells = [make("td", "", bytes(before)), make("td", "", bytes(after)), make("td", "change", signed(after - before))];
		return make("tr", after > before ? "more" : after < before ? "less" : "", head, ...cells);
	});
}
