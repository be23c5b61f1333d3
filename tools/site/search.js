// Pages stand before properties, pages that say a word often before others, and a name that was typed before all;
// a site that was opened from the disk shows excerpts, too.
const asked = (new URLSearchParams(location.search).get("q") ?? "").trim();
const ABOUT = ["CHANGELOG", "CONTRIBUTING", "docs/architecture", "docs/benchmarks", "docs/licenses"];
const times = (page) => {
  const text = (window.EXCERPTS?.[page] ?? []).map(([, words]) => words).join(" ").toLowerCase();
  return Math.min(...asked.toLowerCase().split(/\s+/).map((word) => text.split(word || "\n").length - 1));
};
var Scorer = {
  score: ([page, title, , about, score, , kind]) => {
    const parts = title.split(".");
    if (kind === "object" && /class|function|exception/.test(about) && parts.at(-1) === asked.split(".").at(-1)) return 100 - parts.length;
    if (page.startsWith("reference/")) return score / 4;
    return (score + Math.log2(1 + times(page)) / 2) / (ABOUT.includes(page) ? 3 : 1);
  },
  objNameMatch: 11, objPartialMatch: 6, objPrio: { 0: 15, 1: 5, 2: -5 }, objPrioDefault: 0,
  title: 15, partialTitle: 7, term: 5, partialTerm: 2,
};
if (location.protocol === "file:") {
  // A browser reads no other file for a page from the disk; the texts of all pages stand in excerpts.js, by section.
  const root = document.documentElement.dataset.content_root;
  window.fetch = async (address) => {
    const path = new URL(address, location.href).pathname;
    const home = new URL(root, location.href).pathname;
    const main = document.createElement("div");
    main.setAttribute("role", "main");
    for (const [id, words] of window.EXCERPTS?.[path.slice(home.length).replace(/\.html$/, "")] ?? []) {
      const section = main.appendChild(document.createElement("section"));
      section.id = id;
      section.textContent = `${words} `;
    }
    return { text: async () => main.outerHTML };
  };
}
