const viewers = [...document.querySelectorAll(".tensors")].map(element => new Viewer(element));
{
	const restyle = () => viewers.forEach(v => v.tensors && v.redraw());
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", restyle);
	addEventListener("beforeprint", restyle);
	addEventListener("afterprint", restyle);
	const box = document.querySelector(".compared");
	if (box) Promise.all(viewers.map(v => v.ready)).then(() => compare(box, viewers[0], viewers[1]));
}
