// tip says what the pointer is at.
function tip(viewer, plot, p) {
	const { tensors, hover } = viewer, element = plot.tip, lines = [];
	if (hover.tensor >= 0) {
		lines.push(make("b", "", bytes(tensors.sizes[hover.tensor]) + " " + tensors.label(hover.tensor).name));
		lines.push(counted(tensors, hover.tensor) || tensors.stack(hover.tensor).short, life(tensors, hover.tensor));
	} else {
		lines.push(make("b", "", hover.tensor === idle ? "reserved, not in use" : "nothing"));
	}
	lines.push(`${moment(tensors, hover.position)}: ${bytes(tensors.live[hover.position])} live`);
	if (plot.fill === "map") lines.push("0x" + tensors.address(hover.bytes).toString(16).split(".")[0]);
	element.replaceChildren(...lines.map(l => make("div", "", l)));
	element.hidden = false;
	const width = element.offsetWidth, height = element.offsetHeight, f = plot.frame;
	element.style.left = (p.x + 14 + width > f.width ? Math.max(0, p.x - 14 - width) : p.x + 14) + "px";
	element.style.top = clamp(p.y - height - 10, 0, f.height) + "px";
}

const moment = (tensors, position) => position ? `row ${rowOf(tensors, position)}, ${duration(tensors.ns(position))}` : "the beginning";

const rowOf = (tensors, position) => tensors.row(position).toLocaleString("en");

function duration(ns) {
	const [unit, name] = ns >= 1e9 ? [1e9, "s"] : ns >= 1e6 ? [1e6, "ms"] : [1e3, "µs"];
	return (ns / unit).toPrecision(4).replace(/\.?0+$/, "") + " " + name;
}

// life says when a tensor lives.
function life(tensors, i) {
	const born = tensors.births[i] + 1, died = tensors.deaths[i], from = tensors.ns(born);
	if (died === never) return `from row ${rowOf(tensors, born)}, ${duration(from)}, to the end`;
	const end = tensors.ns(died + 1);
	return `rows ${rowOf(tensors, born)} to ${rowOf(tensors, died + 1)}: ${duration(end - from)} from ${duration(from)} on`;
}

// counted says how many tensors a band stands for; "" for a tensor.
function counted(tensors, i) {
	const count = tensors.kind.count[tensors.kinds[i]];
	return count > 1 ? `${count.toLocaleString("en")} small tensors, the most of this stretch` : "";
}

// describeTensor fills the card of the chosen tensor.
function describeTensor(viewer) {
	const { tensors, pinned } = viewer, card = viewer.element.querySelector(".tensor");
	card.hidden = !pinned;
	if (!pinned) return;
	const i = pinned.tensor, label = tensors.label(i), kind = tensors.kinds[i], count = counted(tensors, i);
	const stream = tensors.meta.streams[tensors.kind.stream[kind]], pool = tensors.meta.pools[tensors.kind.pool[kind]];
	const rows = [
		["size", exact(tensors.sizes[i]) + (count && ": " + count)], ["life", life(tensors, i)],
		["tag", label.name + (label.rule && ": " + label.rule)], ["stream", stream + (pool && ", pool " + pool)],
	];
	if (tensors.spots[i]) {
		rows.push(["address", "0x" + tensors.addresses[tensors.spots[i] - 1].toString(16)]);
		rows.push(...neighbours(tensors, i, clamp(viewer.moment, tensors.births[i] + 1, tensors.deaths[i])));
	}
	const list = make("dl");
	for (const [name, value] of rows) list.append(make("dt", "", name), make("dd", "", value));
	const frames = tensors.frames(i);
	const stack = frames.length ? make("ol", "frames", ...frames.map(f => make("li", "", f))) : make("p", "plain", "no stack was recorded");
	card.replaceChildren(make("h4", "", `${bytes(tensors.sizes[i])} ${label.name}`), list, stack);
	viewer.status.textContent = `${bytes(tensors.sizes[i])} ${label.name}, ${life(tensors, i)}, ${tensors.stack(i).short}`;
}

// neighbours describes what lies before and behind a tensor in memory.
function neighbours(tensors, i, position) {
	const address = j => tensors.addresses[tensors.spots[j] - 1], mine = address(i), end = mine + tensors.sizes[i];
	let below = -1, above = -1;
	for (const j of tensors.alive(position)) {
		if (!tensors.spots[j] || j === i) continue;
		if (address(j) < mine && (below < 0 || address(j) > address(below))) below = j;
		if (address(j) >= end && (above < 0 || address(j) < address(above))) above = j;
	}
	const { from, to, low: lows, size } = tensors.segments;
	const segment = lows.findIndex((at, s) => at <= mine && mine < at + size[s] && from[s] <= position && position < to[s]);
	const low = segment < 0 ? -Infinity : lows[segment], high = segment < 0 ? Infinity : low + size[segment];
	const away = gap => gap >= 512 ? `, ${bytes(gap)} away` : "";
	const text = (j, gap) => `${bytes(tensors.sizes[j])} ${tensors.label(j).name}, ${tensors.stack(j).short}${away(gap)}`;
	const rows = [], beside = { below: "nothing in its segment", above: "nothing in its segment" };
	if (segment >= 0) rows.push(["segment", `${bytes(high - low)} at 0x${low.toString(16)}, ${bytes(mine - low)} in`]);
	if (below >= 0 && address(below) >= low) beside.below = text(below, mine - address(below) - tensors.sizes[below]);
	if (above >= 0 && address(above) < high) beside.above = text(above, address(above) - end);
	return [...rows, ...Object.entries(beside)];
}

// sumsAt adds up what lives at the moment, by a key of each tensor.
function sumsAt(viewer, keyOf) {
	const sums = new Map();
	for (const i of viewer.tensors.alive(viewer.moment)) {
		const key = keyOf(i), sum = sums.get(key) || { bytes: 0, count: 0, tensor: i };
		sum.bytes += viewer.tensors.sizes[i];
		sum.count += viewer.tensors.kind.count[viewer.tensors.kinds[i]];
		sums.set(key, sum);
	}
	return [...sums].sort((a, b) => b[1].bytes - a[1].bytes);
}

const mostRows = 20;

// describeMoment fills the lists of what lives at the moment.
function describeMoment(viewer) {
	const { tensors, moment: at } = viewer, reserved = tensors.reserved(at), box = viewer.element.querySelector(".moment");
	const what = at === tensors.peak ? "At the peak, " : "At ", rest = reserved ? `, ${bytes(reserved)} reserved` : "";
	const title = make("h4", "", `${what}${moment(tensors, at)}: ${bytes(tensors.live[at])} live${rest}`);
	box.replaceChildren(make("div", "", title, tagList(viewer)), make("div", "", ...stackList(viewer)));
	describeMatches(viewer);
}

// describeFlame says what the flame graph adds up, if that is not the moment.
function describeFlame(viewer) {
	const { flame, counts, from, to } = viewer;
	const edge = unit => counts ? Math.floor(unit).toLocaleString("en") : duration(unit);
	const text = `${counts ? "Rows " : ""}${edge(from)} to ${edge(to)}: ${flame.amount(flame.root)}. A frame is as wide as its bytes times how long they live.`;
	viewer.element.querySelector(".range").textContent = flame.over ? text : "";
}

function tagList(viewer) {
	const { tensors } = viewer, { label } = tensors.kind, { labels } = tensors.meta;
	const colors = new Map(viewer.by === "tag" ? viewer.colors.groups.list.map(g => [g.name, g.css]) : []);
	const rows = sumsAt(viewer, i => tensors.label(i).name).map(([name, sum]) => ({
		...sum, name, css: colors.get(name), pick: () => pickKinds(viewer, k => labels[label[k]].name === name),
	}));
	return holders(rows, tensors.live[viewer.moment]);
}

// stackList lists the stacks or, if there are none, the sizes.
function stackList(viewer) {
	const { tensors } = viewer, { stacked } = tensors, keys = stacked ? tensors.kind.stack : tensors.kind.size;
	const sums = sumsAt(viewer, i => keys[tensors.kinds[i]]), rows = sums.slice(0, mostRows).map(([key, sum]) => ({
		...sum, name: stacked ? tensors.meta.stacks[key].short : "blocks of " + bytes(key), frames: tensors.frames(sum.tensor),
		pick: () => pickKinds(viewer, k => keys[k] === key),
	}));
	const title = stacked ? "By stack, the innermost frame first" : "By size (the recording has no stacks)";
	const list = [make("h4", "", title), holders(rows, tensors.live[viewer.moment])];
	if (sums.length > mostRows) list.push(make("p", "plain", `and ${(sums.length - mostRows).toLocaleString("en")} more`));
	const why = stacked && !tensors.meta.driver ? whyNoStack(viewer) : "";
	if (why) list.push(make("p", "plain bare", why));
	return list;
}

// whyNoStack explains why some of what lives at the moment has no stack, "" if all has one.
function whyNoStack({ tensors, moment }) {
	const bare = tensors.alive(moment).filter(i => !tensors.stack(i).frames.length);
	const older = bare.filter(i => tensors.label(i).rule.startsWith("older than the recording"));
	const reasons = [];
	if (older.length) reasons.push("older than the recording");
	if (older.length < bare.length) reasons.push("made by a thread that runs no Python, such as that of the backward pass; the tag says what it is for. " + profiled);
	return reasons.length ? "(no stack): " + reasons.join(", or ") : "";
}

const profiled = "A profile of torch.profiler, which gmtrace page reads too, has the backward pass under the stacks of the forward pass.";

// pickKinds highlights kinds, or all again if they are highlighted already.
function pickKinds(viewer, matches) {
	const picked = Uint8Array.from(viewer.tensors.kind.size, (_, k) => matches(k));
	const same = viewer.matches && viewer.matches.every((m, k) => m === picked[k]);
	viewer.element.querySelector("[data-choose=search]").value = "";
	viewer.highlight(same ? null : picked);
}

// holders makes a list of who holds how much; a click on a row highlights it.
function holders(rows, live) {
	const list = make("ol", "holders");
	for (const row of rows) {
		const percent = 100 * row.bytes / (live || 1), bar = make("span", "bar");
		bar.style.width = percent + "%";
		if (row.css) bar.style.background = row.css;
		const share = make("span", "share", `${percent.toFixed(1)}%, ${row.count.toLocaleString("en")} ${row.count === 1 ? "tensor" : "tensors"}`);
		const button = make("button", "", make("span", "bytes", bytes(row.bytes)), make("span", "name", row.name), share, bar);
		button.type = "button";
		const item = make("li", "", button), frames = row.frames || [];
		button.title = frames.join("\n") || row.name;
		button.onclick = () => {
			const shown = item.querySelector(".frames");
			for (const other of list.querySelectorAll(".frames")) other.remove();
			if (!shown && frames.length) item.append(make("ol", "frames", ...frames.map(f => make("li", "", f))));
			row.pick();
		};
		list.append(item);
	}
	return list;
}

// describeMatches says how much of what lives at the moment is highlighted.
function describeMatches(viewer) {
	const { tensors, matches } = viewer, box = viewer.element.querySelector(".found");
	if (!matches) return box.replaceChildren();
	let sum = 0, count = 0, all = 0;
	for (const i of tensors.alive(viewer.moment)) if (matches[tensors.kinds[i]]) { sum += tensors.sizes[i]; count++; }
	for (const k of tensors.kinds) all += matches[k];
	box.textContent = `${all.toLocaleString("en")} tensors match; ${bytes(sum)} in ${count.toLocaleString("en")} live at the moment`;
}
