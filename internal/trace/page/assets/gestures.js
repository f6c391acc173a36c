// listen follows pointers, the wheel and keys over a plot.
function listen(viewer, plot) {
	const { canvas, box } = plot, pointers = new Map();
	let before = null;
	const at = event => {
		const rect = canvas.getBoundingClientRect();
		return { x: event.clientX - rect.left, y: event.clientY - rect.top };
	};
	const begin = moves => {
		before = { from: viewer.from, to: viewer.to, lo: plot.lo, hi: plot.hi, pointers: new Map(pointers), moves, moved: false };
	};
	canvas.onpointerdown = event => {
		if (event.pointerType === "mouse" && event.button !== 0) return;
		canvas.setPointerCapture(event.pointerId);
		pointers.set(event.pointerId, at(event));
		begin(event.pointerType !== "mouse" || event.shiftKey);
	};
	canvas.onpointermove = event => {
		const p = at(event);
		if (pointers.has(event.pointerId)) {
			pointers.set(event.pointerId, p);
			const first = before.pointers.get(event.pointerId);
			before.moved ||= Math.hypot(p.x - first.x, p.y - first.y) > 4;
			if (before.moved) return drag(viewer, plot, before, pointers, first, p);
		}
		if (event.pointerType === "mouse") viewer.point(plot, p);
	};
	canvas.onpointerup = event => {
		const p = at(event);
		pointers.delete(event.pointerId);
		if (pointers.size) return begin(true);
		if (before && !before.moved) {
			viewer.point(plot, p);
			viewer.pin();
		}
		if (plot.chosen) choose(viewer, plot);
		before = null;
	};
	canvas.onpointercancel = event => {
		pointers.delete(event.pointerId);
		plot.chosen = before = null;
	};
	canvas.onpointerleave = () => viewer.leave();
	canvas.ondblclick = () => viewer.act("all");
	canvas.addEventListener("wheel", event => {
		event.preventDefault();
		const p = at(event), f = plot.frame, by = event.deltaY || event.deltaX;
		const factor = Math.exp(clamp(by / 300, -1, 1));
		if (event.shiftKey || p.x < f.left) plot.zoomBytes(factor, plot.bytes(f, p.y));
		else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) viewer.move(event.deltaX / 1000);
		else viewer.zoom(factor, viewer.at(f, p.x));
	}, { passive: false });
	box.onkeydown = event => key(viewer, plot, event);
}

// drag chooses a box, moves what is shown or, with two fingers, zooms.
function drag(viewer, plot, before, pointers, first, p) {
	const f = plot.frame, span = before.to - before.from, bytes = before.hi - before.lo;
	const perX = span / (f.right - f.left), perY = bytes / (f.bottom - f.top);
	if (!before.moves) {
		const x = clamp(p.x, f.left, f.right), flat = Math.abs(p.y - first.y) < 24;
		plot.chosen = { x0: first.x, x1: x, y0: flat ? f.top : first.y, y1: flat ? f.bottom : clamp(p.y, f.top, f.bottom), flat };
		return viewer.draw();
	}
	const [[was0, is0], second] = [...before.pointers].filter(([id]) => pointers.has(id)).map(([id, was]) => [was, pointers.get(id)]);
	if (!second) {
		const from = clamp(before.from + (was0.x - is0.x) * perX, 0, viewer.span - span);
		if (bytes < plot.most) plot.setBytes(before.lo + (is0.y - was0.y) * perY, before.hi + (is0.y - was0.y) * perY);
		return viewer.set(from, from + span);
	}
	const [was1, is1] = second, wide = Math.max(Math.abs(was0.x - was1.x), 8), tall = Math.abs(was0.y - was1.y);
	const factor = wide / Math.max(8, Math.abs(is0.x - is1.x)), anchor = before.from + ((was0.x + was1.x) / 2 - f.left) * perX;
	const left = anchor - ((is0.x + is1.x) / 2 - f.left) * perX * factor;
	viewer.set(left, left + span * factor);
	if (tall < 40) return;
	const byteFactor = tall / Math.max(8, Math.abs(is0.y - is1.y)), center = before.lo + (f.bottom - (was0.y + was1.y) / 2) * perY;
	const low = center - (f.bottom - (is0.y + is1.y) / 2) * perY * byteFactor;
	plot.setBytes(low, low + bytes * byteFactor);
}

// choose shows the box that was drawn.
function choose(viewer, plot) {
	const f = plot.frame, { x0, x1, y0, y1, flat } = plot.chosen;
	plot.chosen = null;
	if (Math.abs(x1 - x0) < 4) return viewer.draw();
	if (!flat) plot.setBytes(plot.bytes(f, Math.max(y0, y1)), plot.bytes(f, Math.min(y0, y1)));
	viewer.set(viewer.at(f, Math.min(x0, x1)), viewer.at(f, Math.max(x0, x1)));
}

function key(viewer, plot, event) {
	if (event.ctrlKey || event.metaKey || event.altKey) return;
	const climb = by => event.shiftKey ? plot.moveBytes(by / 4) : viewer.climb(by);
	const does = {
		"+": () => viewer.act("in"), "=": () => viewer.act("in"), "-": () => viewer.act("out"),
		"0": () => viewer.act("all"), Home: () => viewer.act("all"),
		ArrowLeft: () => viewer.act("left"), ArrowRight: () => viewer.act("right"), ArrowUp: () => climb(1), ArrowDown: () => climb(-1),
		"]": () => plot.zoomBytes(.5), "[": () => plot.zoomBytes(2), ",": () => viewer.step(-1), ".": () => viewer.step(1),
		p: () => viewer.act("peak"), o: () => viewer.act("oom"), n: () => viewer.iterate(1), N: () => viewer.iterate(-1),
		f: () => viewer.act("fit"), "/": () => viewer.element.querySelector("[data-choose=search]").focus(), Escape: () => viewer.unpin(),
	}[event.key];
	if (!does) return;
	event.preventDefault();
	does();
}

// listenStrip moves what is shown to where the strip is pointed at.
function listenStrip(viewer, canvas) {
	const go = event => {
		if (!(event.buttons & 1) && event.type !== "pointerdown") return;
		const rect = canvas.getBoundingClientRect(), f = viewer.plots[0].frame;
		const middle = (event.clientX - rect.left - f.left) / (f.right - f.left) * viewer.span, span = viewer.to - viewer.from;
		const from = clamp(middle - span / 2, 0, viewer.span - span);
		viewer.set(from, from + span);
	};
	canvas.onpointerdown = event => { canvas.setPointerCapture(event.pointerId); go(event); };
	canvas.onpointermove = go;
}
