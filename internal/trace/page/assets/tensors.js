const never = 0x7fffffff;

// Tensors is the allocations of a GPU. Births and deaths are events; a position is a number of events, and stands for the state after them.
class Tensors {
	constructor(unpack) {
		this.meta = JSON.parse(new TextDecoder().decode(unpack.bytes()));
		this.times = unpack.numbers(); // in ticks, by event
		this.rows = unpack.numbers(); // of the trace, by event
		this.births = unpack.numbers(Int32Array);
		this.deaths = unpack.counts();
		this.kinds = unpack.counts(); // by tensor
		this.spots = unpack.counts(); // number of the address, from 1
		const size = unpack.numbers(), [stack, label, stream, pool, count] = Array.from({ length: 5 }, () => unpack.counts());
		this.kind = { size, stack, label, stream, pool, count };
		this.addresses = unpack.numbers();
		const from = unpack.numbers(Int32Array), to = unpack.counts().map((life, i) => life ? from[i] + life : never);
		this.segments = { from, to, low: unpack.numbers(), size: unpack.counts(Float64Array), stream: unpack.counts() };
		this.length = this.births.length;
		this.events = this.times.length;
		this.span = Math.max(this.meta.endNS, 1);
		this.follow();
		this.reserve();
		this.placeAll();
	}

	// follow finds the tensor of each event, ~i for the death of tensor i, and the live bytes by position.
	follow() {
		const { births, deaths, kinds, events } = this, sizes = this.kind.size;
		this.sizes = new Float64Array(this.length);
		this.byEvent = new Int32Array(events);
		this.live = new Float64Array(events + 1);
		for (let i = 0; i < this.length; i++) {
			this.sizes[i] = sizes[kinds[i]];
			this.byEvent[births[i]] = i;
			deaths[i] = deaths[i] ? births[i] + deaths[i] : never;
			if (deaths[i] !== never) this.byEvent[deaths[i]] = ~i;
		}
		this.peak = 0;
		for (let e = 0, sum = 0; e < events; e++) {
			const i = this.byEvent[e];
			sum += i < 0 ? -this.sizes[~i] : this.sizes[i];
			this.live[e + 1] = sum;
			if (sum > this.live[this.peak]) this.peak = e + 1;
		}
	}

	// reserve finds the positions at which the bytes of all segments change, and these bytes.
	reserve() {
		const { from, to, size } = this.segments, changes = [];
		for (let i = 0; i < from.length; i++) {
			changes.push([from[i], size[i]]);
			if (to[i] !== never) changes.push([to[i], -size[i]]);
		}
		changes.sort((a, b) => a[0] - b[0]);
		const at = [], sum = [];
		let bytes = 0;
		this.mostReserved = 0;
		for (const [position, change] of changes) {
			bytes += change;
			if (at.at(-1) !== position) { at.push(position); sum.push(bytes); } else sum[sum.length - 1] = bytes;
		}
		for (const n of sum) this.mostReserved = Math.max(this.mostReserved, n);
		this.reservedFrom = Int32Array.from(at);
		this.reservedBytes = Float64Array.from(sum);
	}

	reserved(position) {
		const i = upTo(this.reservedFrom, position);
		return i ? this.reservedBytes[i - 1] : 0;
	}

	// placeAll gives each address its place on a map that leaves out what no segment and no tensor ever had.
	placeAll() {
		const { low, size } = this.segments, largest = new Float64Array(this.addresses.length), used = [];
		for (let i = 0; i < this.length; i++) {
			const spot = this.spots[i] - 1;
			if (spot >= 0 && this.sizes[i] > largest[spot]) largest[spot] = this.sizes[i];
		}
		for (let i = 0; i < low.length; i++) used.push([low[i], low[i] + size[i]]);
		for (let i = 0; i < largest.length; i++) used.push([this.addresses[i], this.addresses[i] + largest[i]]);
		used.sort((a, b) => a[0] - b[0]);
		this.ranges = [];
		for (const [begin, end] of used) {
			const last = this.ranges.at(-1);
			if (last && begin <= last.end) last.end = Math.max(last.end, end);
			else this.ranges.push({ begin, end });
		}
		this.height = 0; // of the map, in bytes
		for (const range of this.ranges) {
			range.place = this.height;
			this.height += range.end - range.begin;
		}
		this.rangeBegins = Float64Array.from(this.ranges, r => r.begin);
		this.places = Float64Array.from(this.addresses, a => this.place(a));
		this.segments.place = Float64Array.from(low, a => this.place(a));
	}

	place(address) {
		const range = this.ranges[upTo(this.rangeBegins, address) - 1];
		return range.place + address - range.begin;
	}

	// address returns what is at a place on the map.
	address(place) {
		const range = this.ranges.findLast(r => r.place <= place);
		return range ? range.begin + place - range.place : 0;
	}

	ns(position) { return position ? this.times[Math.min(position, this.events) - 1] * this.meta.tick : 0; }

	row(position) { return position ? this.rows[Math.min(position, this.events) - 1] : 0; }

	at(ns) { return upTo(this.times, ns / this.meta.tick); }

	// alive returns the tensors that live at a position, the oldest first.
	alive(position) {
		const list = [], born = upTo(this.births, position - 1);
		for (let i = 0; i < born; i++) if (this.deaths[i] >= position) list.push(i);
		return list;
	}

	label(i) { return this.meta.labels[this.kind.label[this.kinds[i]]]; }

	stack(i) { return this.meta.stacks[this.kind.stack[this.kinds[i]]]; }

	frames(i) { return this.stack(i).frames.map(f => this.meta.frames[f]); }

	get stacked() { return this.meta.frames.length > 0; }
}
