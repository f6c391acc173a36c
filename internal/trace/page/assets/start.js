const viewers = [...document.querySelectorAll(".tensors")].map(element => new Viewer(element));
{
	const restyle = () => viewers.forEach(v => v.tensors && v.redraw());
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", restyle);
	// A page that is about to be printed is laid out for paper already now, because the pictures cannot be drawn later.
	for (const [event, paper] of [["beforeprint", true], ["afterprint", false]]) addEventListener(event, () => {
		document.documentElement.classList.toggle("paper", paper);
		restyle();
	});
	const box = document.querySelector(".compared");
	if (box) Promise.all(viewers.map(v => v.ready)).then(() => compare(box, viewers[0], viewers[1]));
}
