// Stretch is a stretch of time over tensors, from one unit of an axis to another. A unit is an event or a nanosecond.
class Stretch {
	get span() { return this.axis === "events" ? this.tensors.events + 1 : this.tensors.span; }
	position(unit) { return this.axis === "events" ? clamp(Math.floor(unit), 0, this.tensors.events) : this.tensors.at(unit); }
	unit(position, ns = this.tensors.ns(position)) { return this.axis === "events" ? position : ns; }
	x(f, unit) { return f.left + (unit - this.from) / (this.to - this.from) * (f.right - f.left); }
	at(f, x) { return this.from + (x - f.left) / (f.right - f.left) * (this.to - this.from); }

	// middle returns the x of a position, between where it begins and where the next does.
	middle(f, position) {
		const next = position < this.tensors.events ? this.unit(position + 1) : this.span;
		return (this.x(f, this.unit(position)) + this.x(f, next)) / 2;
	}
}
