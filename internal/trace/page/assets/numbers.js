"use strict";
// unpacker returns functions that read the next list of numbers, or of bytes, as Packer packed them.
async function unpacker(text) {
	const packed = atob(text), raw = new Uint8Array(packed.length);
	for (let i = 0; i < raw.length; i++) raw[i] = packed.charCodeAt(i);
	const stream = new Blob([raw]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
	const buf = new Uint8Array(await new Response(stream).arrayBuffer());
	let at = 0;
	const varint = () => {
		let byte = buf[at++], value = byte & 127;
		for (let scale = 128; byte > 127; scale *= 128) {
			byte = buf[at++];
			value += (byte & 127) * scale;
		}
		return value;
	};
	return {
		numbers(List = Float64Array) {
			const list = new List(varint());
			let last = 0;
			for (let i = 0; i < list.length; i++) {
				const zigzag = varint();
				last += zigzag % 2 ? -(zigzag + 1) / 2 : zigzag / 2;
				list[i] = last;
			}
			return list;
		},
		counts(List = Int32Array) {
			const list = new List(varint());
			for (let i = 0; i < list.length; i++) list[i] = varint();
			return list;
		},
		bytes() {
			const n = varint();
			at += n;
			return buf.subarray(at - n, at);
		},
	};
}

const units = ["B", "KiB", "MiB", "GiB", "TiB"];
function bytes(n) {
	let power = 0, x = n;
	while (Math.abs(x) >= 1024 && power < 4) { x /= 1024; power++; }
	return (x === Math.trunc(x) ? x.toFixed(0) : rounded(x, Math.abs(x) >= 99.995 ? 1 : 2)) + " " + units[power];
}
// rounded writes a number with so many digits as Go does: what lies in the middle between two is rounded to the even one.
function rounded(x, digits) {
	const unit = 10 ** digits, middle = Math.abs(x * unit % 1) === .5;
	return (middle ? 2 * Math.round(x * unit / 2) / unit : x).toFixed(digits);
}
const exact = n => bytes(n) + " (" + n.toLocaleString("en") + " bytes)";
function time(ns, step) {
	const [unit, name] = step >= 1e6 ? [1e9, "s"] : step >= 1e3 ? [1e6, "ms"] : [1e3, "µs"];
	const digits = Math.max(0, Math.ceil(-Math.log10(step / unit) - 1e-9));
	return (ns / unit).toFixed(Math.min(digits, 9)) + " " + name;
}
// nice returns the step of a grid with about n lines over a span: 1, 2 or 5 times a power of ten; of bytes, a power of two.
function nice(span, n, binary) {
	const raw = span / n;
	if (binary) return 2 ** Math.max(0, Math.ceil(Math.log2(raw)));
	const unit = 10 ** Math.floor(Math.log10(raw));
	return unit * ([1, 2, 5].find(m => m * unit >= raw) || 10);
}
// upTo returns how many numbers of an ascending list are at most x.
function upTo(list, x) {
	let lo = 0, hi = list.length;
	while (lo < hi) {
		const mid = lo + hi >> 1;
		if (list[mid] <= x) lo = mid + 1; else hi = mid;
	}
	return lo;
}
// pixelRatio is the pixels of a canvas for one of the page: more on paper than on most screens.
const pixelRatio = () => document.documentElement.classList.contains("paper") ? 3 : devicePixelRatio || 1;
const clamp = (x, lo, hi) => Math.min(Math.max(x, lo), hi);
// make makes an element of the page.
function make(tag, className, ...content) {
	const element = document.createElement(tag);
	if (className) element.className = className;
	element.append(...content);
	return element;
}
