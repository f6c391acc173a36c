// Marks the curves of the row that the pointer is on, and the rows of the curve.
{
	const parts = [...document.querySelectorAll("[data-ranks]")];
	const ranks = new Map(parts.map((part) => [part, new Set(part.dataset.ranks.split(" "))]));
	const choose = (chosen) => {
		for (const part of parts) part.classList.toggle("chosen", chosen !== null && !ranks.get(part).isDisjointFrom(ranks.get(chosen)));
	};
	for (const part of parts) {
		part.addEventListener("pointerenter", () => choose(part));
		part.addEventListener("pointerleave", () => choose(null));
	}
}
