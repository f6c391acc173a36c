// Stretch is a stretch of time over tensors, from one unit of an axis to another. A unit is a row of the trace or a nanosecond.
class Stretch {
	get counts() { return this.axis === "rows"; }
	get span() { return this.counts ? Math.max(this.tensors.meta.rows, 1) : this.tensors.span; }
	position(unit) { return this.counts ? upTo(this.tensors.rows, unit) : this.tensors.at(unit); }
	unit(position) { return this.counts ? this.tensors.row(position) : this.tensors.ns(position); }
	unitOf(place) { return this.counts ? place.row : place.ns; }
	x(f, unit) { return f.left + (unit - this.from) / (this.to - this.from) * (f.right - f.left); }
	at(f, x) { return this.from + (x - f.left) / (f.right - f.left) * (this.to - this.from); }

	// middle returns the x of a position, between where it begins and where the next does.
	middle(f, position) {
		const next = position < this.tensors.events ? this.unit(position + 1) : this.span;
		return (this.x(f, this.unit(position)) + this.x(f, next)) / 2;
	}
}
