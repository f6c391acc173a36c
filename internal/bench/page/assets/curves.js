(async () => {
	const data = JSON.parse(document.getElementById("data").textContent);
	const unpack = await unpacker(data.packed);
	const views = [];
	data.sections.forEach((section, number) => {
		const element = document.querySelector(`#trace-${number} .figure`);
		if (!element || !section.series.length) return;
		views.push(new View(element, section, unpack));
	});
	const all = () => views.forEach(v => {
		v.restyle();
		v.drawNow(); // before the page is printed
	});
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", all);
	addEventListener("beforeprint", all);
	addEventListener("afterprint", all);
})();

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
