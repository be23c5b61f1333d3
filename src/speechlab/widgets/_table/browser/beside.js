// The tables and figures of a report besides its rows: use by keyboard and on a phone.

const FEW = 6;
const WORTH_A_BUTTON = 3;

/**
 * Shows only the first rows of a table on a phone. The browser's search and printing still show the others.
 * @param {HTMLTableElement} table
 * @param {MediaQueryList} phone
 */
function foldRows(table, phone) {
  const rows = [...table.tBodies[0].rows];
  if (rows.length < FEW + WORTH_A_BUTTON) return;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "sl-more";
  table.after(button);
  const show = (/** @type {boolean} */ all) => {
    for (const row of rows.slice(FEW)) {
      if (all) row.removeAttribute("hidden");
      else row.setAttribute("hidden", "until-found");
    }
    button.hidden = !phone.matches;
    button.setAttribute("aria-expanded", String(all));
    button.textContent = all ? `Show the first ${FEW} rows alone` : `Show all ${rows.length} rows`;
  };
  button.addEventListener("click", () => show(button.getAttribute("aria-expanded") === "false"));
  table.addEventListener("beforematch", () => show(true));
  window.addEventListener("beforeprint", () => show(true));
  phone.addEventListener("change", () => show(!phone.matches));
  show(!phone.matches);
}

/**
 * Numbers and names that lead to their rows; a name is played as well.
 * @param {(filter: any) => void} narrow
 * @param {boolean} sound Whether the rows have sounds.
 */
function linkRows(narrow, sound) {
  for (const link of document.querySelectorAll("main a[data-rows]")) {
    if (!(link instanceof HTMLElement)) continue;
    const filter = JSON.parse(link.dataset.rows ?? "");
    link.title = "Show these rows";
    link.addEventListener("click", () => narrow(filter));
    const cell = link.closest("td");
    if (!sound || cell !== cell?.parentElement?.querySelector("td:has(a[data-rows])") || !link.querySelector("strong")) continue;
    const play = document.createElement("button");
    play.type = "button";
    play.className = "sl-hear";
    play.textContent = "▶";
    play.setAttribute("aria-label", `Hear ${link.textContent}`);
    play.addEventListener("click", () => narrow({ ...filter, play: true }));
    link.before(play);
  }
}

/** @param {(filter: any) => void} narrow @param {boolean} sound */
export function settleBeside(narrow, sound) {
  linkRows(narrow, sound);
  const phone = window.matchMedia("(max-width: 640px)");
  for (const table of document.querySelectorAll("main [role=group] > table")) {
    if (table instanceof HTMLTableElement) foldRows(table, phone);
  }
  // Only elements that scroll are in the tab order.
  const sized = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      if (target.scrollWidth > target.clientWidth) target.setAttribute("tabindex", "0");
      else target.removeAttribute("tabindex");
    }
  });
  for (const group of document.querySelectorAll("main [role=group][tabindex]")) sized.observe(group);
}
