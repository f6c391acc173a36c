// values returns the curves' values at a time.
function values(view, ns) {
	const bucket = view.bucket(ns), all = [];
	for (const { s, what, curve } of view.shown()) {
		if (bucket >= curve.length) continue;
		const [least, most] = curve.range(bucket, bucket);
		all.push({ s, what, text: least === most ? exact(most) : bytes(least) + " to " + exact(most), most });
	}
	return all.sort((a, b) => b.most - a.most);
}

// when returns a time as text, and its requests.
function when(view, ns) {
	const bucket = view.bucket(ns), first = bucket * view.section.stride;
	const steps = view.section.stride === 1 ? "request " + first : "requests " + first + " to " + (first + view.section.stride - 1);
	return "after " + time(ns, Math.max((view.to - view.from) / 1000, 1)) + ", " + steps;
}

// words states the values of the curves at a time in a sentence.
function words(view, ns) {
	return when(view, ns) + ": " + values(view, ns).map(v => v.s.name + " " + v.what + " " + v.text).join("; ");
}

// tell shows what is at the cursor beside it: at a point of a map, or for each curve.
function tell(view, box, p) {
	for (const other of [view.chart, view.map]) if (other && other !== box) other.querySelector(".tip").hidden = true;
	const tip = box.querySelector(".tip"), canvas = box.querySelector("canvas"), f = view.frame(canvas.clientWidth, canvas.clientHeight);
	tip.replaceChildren();
	const head = document.createElement("div");
	head.textContent = when(view, view.cursor);
	tip.append(head);
	if (box === view.map && p) {
		const line = document.createElement("div");
		line.textContent = place(view, f, p);
		tip.append(line);
	} else {
		tip.append(tipTable(view));
	}
	tip.hidden = false;
	const x = view.x(f, view.cursor), width = tip.offsetWidth, beside = x + 14 + width > canvas.clientWidth ? x - 14 - width : x + 14;
	tip.style.left = Math.max(0, Math.min(beside, canvas.clientWidth - width)) + "px";
	tip.style.top = (p ? Math.min(Math.max(p.y - 20, 0), Math.max(0, canvas.clientHeight - tip.offsetHeight)) : 12) + "px";
}

function tipTable(view) {
	const table = document.createElement("table");
	for (const v of values(view, view.cursor)) {
		const row = table.insertRow(), name = document.createElement("th"), swatch = document.createElement("span");
		swatch.className = "swatch s" + v.s.color;
		name.append(swatch, v.s.name + " ");
		const what = document.createElement("small");
		what.textContent = v.what;
		name.append(what);
		row.append(name);
		row.insertCell().textContent = v.text;
	}
	return table;
}

// place says what is at a point of the map.
function place(view, f, p) {
	const map = view.section.map, share = (f.bottom - p.y) / (f.bottom - f.top);
	if (share < 0 || share >= 1 || view.cursor >= map.span) return "";
	const offset = share * map.total, range = map.ranges.find(r => offset < r.offset + r.size) || map.ranges.at(-1);
	const address = BigInt("0x" + range.addr) + BigInt(Math.floor(offset - range.offset));
	const cell = Math.floor(view.cursor / map.span * map.columns) * map.lines + Math.floor(share * map.lines);
	const percent = n => Math.round(n / 2.55) + " %";
	return "0x" + address.toString(16) + ", in the " + bytes(range.size) + " from 0x" + range.addr + ": " +
		percent(view.held[cell]) + " reserved, " + percent(view.live[cell]) + " in use";
}
