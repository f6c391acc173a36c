"use strict";
(async () => {
	const data = JSON.parse(document.getElementById("data").textContent);
	const unpack = await unpacker(data.packed);
	const views = [];
	data.sections.forEach((section, number) => {
		const element = document.getElementById("trace-" + number);
		if (!element || !section.series.length) return;
		views.push(new View(element, section, unpack));
	});
	const all = () => views.forEach(v => v.restyle());
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", all);
	addEventListener("beforeprint", all);
	addEventListener("afterprint", all);
})();

// unpacker returns a function that reads the next list of numbers, or of bytes.
async function unpacker(text) {
	const raw = Uint8Array.from(atob(text), c => c.charCodeAt(0));
	const stream = new Blob([raw]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
	const buf = new Uint8Array(await new Response(stream).arrayBuffer());
	let at = 0;
	const varint = () => {
		let value = 0, scale = 1, byte;
		do {
			byte = buf[at++];
			value += (byte & 127) * scale;
			scale *= 128;
		} while (byte > 127);
		return value;
	};
	return {
		numbers() {
			const list = new Float64Array(varint());
			let last = 0;
			for (let i = 0; i < list.length; i++) {
				const zigzag = varint();
				last += zigzag % 2 ? -(zigzag + 1) / 2 : zigzag / 2;
				list[i] = last;
			}
			return list;
		},
		bytes() {
			const n = varint();
			at += n;
			return buf.subarray(at - n, at);
		},
	};
}

// Curve is the least and the most of each bucket, and of 4, 16, 64 and more of them at a time.
class Curve {
	constructor(least, most) {
		this.levels = [{ least, most }];
		while (this.levels.at(-1).least.length > 256) {
			const below = this.levels.at(-1), n = Math.ceil(below.least.length / 4);
			const level = { least: new Float64Array(n).fill(Infinity), most: new Float64Array(n).fill(-Infinity) };
			for (let i = 0; i < below.least.length; i++) {
				level.least[i >> 2] = Math.min(level.least[i >> 2], below.least[i]);
				level.most[i >> 2] = Math.max(level.most[i >> 2], below.most[i]);
			}
			this.levels.push(level);
		}
	}
	get length() { return this.levels[0].least.length; }

	// range returns the least and the most of the buckets from lo to hi, with hi.
	range(lo, hi) {
		let least = Infinity, most = -Infinity;
		hi = Math.min(hi, this.length - 1);
		for (let l = 0; lo <= hi; l++, lo >>= 2, hi >>= 2) {
			const level = this.levels[l], top = l === this.levels.length - 1;
			const take = i => {
				least = Math.min(least, level.least[i]);
				most = Math.max(most, level.most[i]);
			};
			if (top || hi - lo < 8) {
				for (let i = lo; i <= hi; i++) take(i);
				break;
			}
			while (lo & 3) take(lo++);
			while ((hi & 3) !== 3) take(hi--);
		}
		return [least, most];
	}
}

const units = ["B", "KiB", "MiB", "GiB", "TiB"];
function bytes(n) {
	let power = 0, x = n;
	while (Math.abs(x) >= 1024 && power < 4) { x /= 1024; power++; }
	return (x === Math.trunc(x) ? x.toFixed(0) : x.toFixed(Math.abs(x) >= 100 ? 1 : 2)) + " " + units[power];
}
const exact = n => bytes(n) + " (" + n.toLocaleString("en") + " bytes)";
function time(ns, step) {
	const [unit, name] = step >= 1e9 ? [1e9, "s"] : step >= 1e6 ? [1e9, "s"] : step >= 1e3 ? [1e6, "ms"] : [1e3, "µs"];
	const digits = Math.max(0, Math.ceil(-Math.log10(step / unit) - 1e-9));
	return (ns / unit).toFixed(Math.min(digits, 9)) + " " + name;
}
// nice returns the step of a grid with about n lines over a span: 1, 2 or 5 times a power of ten; of bytes, in a unit.
function nice(span, n, binary) {
	const raw = span / n, unit = binary ? 1024 ** Math.max(0, Math.floor(Math.log2(raw) / 10)) : 10 ** Math.floor(Math.log10(raw));
	const steps = binary ? [1, 2, 5, 10, 20, 50, 100, 200, 500, 1024] : [1, 2, 5, 10];
	return unit * (steps.find(m => m * unit >= raw) || steps.at(-1));
}
