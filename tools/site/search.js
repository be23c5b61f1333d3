// Pages stand before properties, and a site that was opened from the disk shows excerpts, too.
var Scorer = {
  score: ([page, , , , score]) => page.startsWith("reference/") ? score / 4 : score,
  objNameMatch: 11, objPartialMatch: 6, objPrio: { 0: 15, 1: 5, 2: -5 }, objPrioDefault: 0,
  title: 15, partialTitle: 7, term: 5, partialTerm: 2,
};
if (location.protocol === "file:") {
  // A browser reads no other file for a page from the disk; the texts of all pages stand in excerpts.js.
  const root = document.documentElement.dataset.content_root;
  window.fetch = async (address) => {
    const path = new URL(address, location.href).pathname;
    const home = new URL(root, location.href).pathname;
    const main = document.createElement("div");
    main.setAttribute("role", "main");
    main.textContent = (window.EXCERPTS ?? {})[path.slice(home.length).replace(/\.html$/, "")] ?? "";
    return { text: async () => main.outerHTML };
  };
}
