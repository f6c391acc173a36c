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
		compareStacks(box, a, b);
	};
	a.listeners.push(update);
	b.listeners.push(update);
	update();
}

// compareStacks fills the list of stacks: of sizes, if no run has stacks. Of one that has none alone, it says so, and shows those of the other.
function compareStacks(box, a, b) {
	const bare = [a, b].filter(v => !v.tensors.stacked), all = bare.length === 2;
	const text = all ? "size (neither run has stacks)" : "stack, the innermost frame first";
	const without = all ? "" : bare.map(v => `${v === a ? "A" : "B"}, ${v.name}, has no stacks: its bytes are in one row.`).join(" ");
	box.querySelector(".by").textContent = text;
	box.querySelector(".without").textContent = without;
	const nameOf = v => i => {
		if (v.tensors.stacked) return v.tensors.stack(i).group;
		return all ? "blocks of " + bytes(v.tensors.sizes[i]) : `all of ${v.name}, which has no stacks`;
	};
	box.querySelector(".stacks").replaceChildren(...rows(a, b, nameOf, bare.length !== 1));
}

const signed = n => (n > 0 ? "+" : n < 0 ? "−" : "±") + bytes(Math.abs(n));

// rows makes the rows of a table: each name with the bytes on both sides, the greatest difference first. Names that are not common to both
// sides are not compared.
function rows(a, b, nameOf, common = true) {
	const all = new Map();
	for (const [side, v] of [[0, a], [1, b]]) for (const [name, sum] of sumsAt(v, nameOf(v))) {
		if (!all.has(name)) all.set(name, common ? [0, 0] : [NaN, NaN]);
		all.get(name)[side] = sum.bytes;
	}
	const list = [...all].sort(([, p], [, q]) => weight(q) - weight(p) || q[0] - p[0]);
	return list.slice(0, mostRows).map(([name, [before, after]]) => {
		const head = make("th", "", name);
		head.scope = "row";
		head.title = name;
		const cells = [make("td", "", amount(before)), make("td", "", amount(after)), make("td", "change", amount(after - before, signed))];
		return make("tr", after > before ? "more" : after < before ? "less" : "", head, ...cells);
	});
}

// weight puts rows in order: by their difference or, if they have none, by the side that there is.
function weight([before, after]) {
	if (Number.isNaN(after)) return before;
	return Number.isNaN(before) ? after : Math.abs(after - before);
}

const amount = (n, text = bytes) => Number.isNaN(n) ? "–" : text(n);
