// listen follows pointers, the wheel and keys over a box.
function listen(view, box) {
	const canvas = box.querySelector("canvas"), pointers = new Map();
	const at = event => {
		const rect = canvas.getBoundingClientRect();
		return { x: event.clientX - rect.left, y: event.clientY - rect.top, f: view.frame(rect.width, rect.height) };
	};
	let before = null;
	canvas.onpointerdown = event => {
		if (event.pointerType === "mouse" && event.button !== 0) return;
		canvas.setPointerCapture(event.pointerId);
		const p = at(event);
		pointers.set(event.pointerId, p);
		before = { from: view.from, to: view.to, pointers: new Map(pointers), moves: event.pointerType !== "mouse" || event.shiftKey };
		if (!before.moves) view.chosen = [view.ns(p.f, p.x), view.ns(p.f, p.x)];
	};
	canvas.onpointermove = event => {
		const p = at(event);
		if (pointers.has(event.pointerId)) {
			pointers.set(event.pointerId, p);
			drag(view, before, pointers, p);
		}
		view.point(box, view.ns(p.f, Math.min(Math.max(p.x, p.f.left), p.f.right)), p);
	};
	const end = event => {
		pointers.delete(event.pointerId);
		if (view.chosen && !pointers.size) {
			const [a, b] = view.chosen, f = at(event).f;
			view.chosen = null;
			if (Math.abs(view.x(f, a) - view.x(f, b)) > 4) view.set(Math.min(a, b), Math.max(a, b));
			else view.draw();
		}
		before = pointers.size ? { from: view.from, to: view.to, pointers: new Map(pointers), moves: true } : null;
	};
	canvas.onpointerup = canvas.onpointercancel = end;
	canvas.onpointerleave = () => view.leave();
	canvas.ondblclick = () => view.set(0, view.span);
	canvas.addEventListener("wheel", event => {
		event.preventDefault();
		const p = at(event), across = Math.abs(event.deltaX) > Math.abs(event.deltaY);
		if (across) view.move(event.deltaX / 1000);
		else view.zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY / 300))), view.ns(p.f, p.x));
	}, { passive: false });
	box.onkeydown = event => key(view, box, event);
	box.onblur = () => view.leave();
}

// drag chooses a stretch, moves what is shown, or, with two fingers, zooms.
function drag(view, before, pointers, p) {
	if (!before.moves) {
		view.chosen[1] = Math.min(Math.max(view.ns(p.f, p.x), view.from), view.to);
		return view.draw();
	}
	const xs = [...before.pointers].filter(([id]) => pointers.has(id)).map(([id, was]) => [was.x, pointers.get(id).x]);
	const scale = (before.to - before.from) / (p.f.right - p.f.left);
	if (xs.length === 1) {
		const by = (xs[0][0] - xs[0][1]) * scale, span = before.to - before.from;
		const from = Math.min(Math.max(before.from + by, 0), view.span - span);
		return view.set(from, from + span);
	}
	const was = Math.max(8, Math.abs(xs[0][0] - xs[1][0])), is = Math.max(8, Math.abs(xs[0][1] - xs[1][1])), factor = was / is;
	const anchor = before.from + ((xs[0][0] + xs[1][0]) / 2 - p.f.left) * scale, middle = (xs[0][1] + xs[1][1]) / 2 - p.f.left;
	view.set(anchor - middle * scale * factor, anchor - middle * scale * factor + (before.to - before.from) * factor);
}

function key(view, box, event) {
	if (event.ctrlKey || event.metaKey || event.altKey) return;
	const step = by => {
		const now = view.cursor === null ? (view.from + view.to) / 2 : view.cursor;
		const cursor = Math.min(Math.max(now + by * (view.to - view.from) / 100, view.from), view.to);
		view.point(box, cursor, null);
		view.status.textContent = words(view, cursor);
	};
	const does = {
		"+": () => view.act("in"), "=": () => view.act("in"), "-": () => view.act("out"), "0": () => view.act("all"), Home: () => view.act("all"),
		ArrowLeft: () => view.act("left"), ArrowRight: () => view.act("right"), ",": () => step(-1), ".": () => step(1),
		Escape: () => view.leave(),
	}[event.key];
	if (!does) return;
	event.preventDefault();
	does();
}

// listenStrip moves what is shown to where the strip is pointed at.
function listenStrip(view) {
	const canvas = view.strip.querySelector("canvas");
	const go = event => {
		if (!(event.buttons & 1) && event.type !== "pointerdown") return;
		const rect = canvas.getBoundingClientRect(), middle = (event.clientX - rect.left - 64) / (rect.width - 72) * view.span;
		const span = view.to - view.from, from = Math.min(Math.max(middle - span / 2, 0), view.span - span);
		view.set(from, from + span);
	};
	canvas.onpointerdown = event => { canvas.setPointerCapture(event.pointerId); go(event); };
	canvas.onpointermove = go;
}
