// Sweep follows the live tensors from position to position, as a list for each group, the oldest first.
class Sweep {
	constructor(tensors, groups, count) {
		this.tensors = tensors;
		this.groups = groups; // by kind
		this.head = new Int32Array(count);
		this.tail = new Int32Array(count);
		this.next = new Int32Array(tensors.length);
		this.before = new Int32Array(tensors.length);
		this.segments = []; // numbers of those that exist
	}

	start(position) {
		const { births, deaths, segments } = this.tensors, born = upTo(births, position - 1);
		this.position = position;
		this.head.fill(-1);
		this.tail.fill(-1);
		for (let i = 0; i < born; i++) if (deaths[i] >= position) this.add(i);
		this.segments.length = 0;
		this.nextSegment = 0;
		this.advanceSegments();
	}

	add(i) {
		const group = this.groups[this.tensors.kinds[i]], last = this.tail[group];
		this.before[i] = last;
		this.next[i] = -1;
		if (last < 0) this.head[group] = i; else this.next[last] = i;
		this.tail[group] = i;
	}

	remove(i) {
		const group = this.groups[this.tensors.kinds[i]], before = this.before[i], next = this.next[i];
		if (before < 0) this.head[group] = next; else this.next[before] = next;
		if (next < 0) this.tail[group] = before; else this.before[next] = before;
	}

	// advance goes on to a later position.
	advance(position) {
		const { byEvent } = this.tensors;
		for (let e = this.position; e < position; e++) {
			const i = byEvent[e];
			if (i < 0) this.remove(~i); else this.add(i);
		}
		this.position = position;
		this.advanceSegments();
	}

	advanceSegments() {
		const { from, to } = this.tensors.segments, position = this.position;
		let changed = false;
		for (; this.nextSegment < from.length && from[this.nextSegment] <= position; this.nextSegment++) {
			this.segments.push(this.nextSegment);
			changed = true;
		}
		if (changed || this.segments.some(s => to[s] <= position)) this.segments = this.segments.filter(s => to[s] > position);
	}

	// stack fills a column of pixels, from the bottom, with the tensors that lie above each other, from byte lo on.
	stack(pixels, from, height, lo, scale) {
		const { sizes } = this.tensors, next = this.next;
		let bytes = -lo, y = 0;
		for (let group = 0; group < this.head.length; group++) {
			for (let i = this.head[group]; i >= 0; i = next[i]) {
				bytes += sizes[i];
				if (bytes <= 0) continue;
				const top = Math.min(height, Math.round(bytes * scale));
				while (y < top) pixels[from + y++] = i;
				if (y === height) return;
			}
		}
		const held = clamp(Math.round((this.tensors.reserved(this.position) - lo) * scale), y, height);
		pixels.fill(idle, from + y, from + held);
		pixels.fill(nothing, from + held, from + height);
	}

	// map fills a column of pixels with the tensors at their places, from place lo on.
	map(pixels, from, height, lo, scale) {
		const { sizes, spots, places, segments } = this.tensors;
		pixels.fill(nothing, from, from + height);
		for (const s of this.segments) {
			const low = clamp(Math.floor((segments.place[s] - lo) * scale), 0, height);
			pixels.fill(idle, from + low, from + clamp(Math.ceil((segments.place[s] + segments.size[s] - lo) * scale), low, height));
		}
		for (let group = 0; group < this.head.length; group++) {
			for (let i = this.head[group]; i >= 0; i = this.next[i]) {
				if (!spots[i]) continue;
				const place = places[spots[i] - 1] - lo, low = Math.round(place * scale), high = Math.round((place + sizes[i]) * scale);
				if (high < 0 || low >= height) continue;
				if (low === high && low >= 0 && pixels[from + low] < 0) pixels[from + low] = i;
				for (let y = Math.max(low, 0), end = Math.min(high, height); y < end; y++) pixels[from + y] = i;
			}
		}
	}

	// order returns the live tensors from the bottom to the top.
	order() {
		const list = [];
		for (let group = 0; group < this.head.length; group++) for (let i = this.head[group]; i >= 0; i = this.next[i]) list.push(i);
		return list;
	}
}

// What a pixel has instead of a tensor.
const idle = -2, nothing = -1;
