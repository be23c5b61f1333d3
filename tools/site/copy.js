// A button copies what is typed of a block of code, without prompts and results.
const PROMPT = /^(>>>|\.\.\.|\$|#) ?/;
const typed = (block) => {
  const lines = block.querySelector("pre").textContent.trimEnd().split("\n");
  if (!/^(>>>|\$|# )/.test(lines[0]) || !block.closest(".highlight-console, .highlight-python, .highlight-pycon, .doctest"))
    return lines.join("\n");
  const kept = lines.filter((line, n) => PROMPT.test(line) || lines[n - 1]?.endsWith("\\"));
  return kept.map((line) => line.replace(PROMPT, "")).join("\n");
};
document.addEventListener("DOMContentLoaded", () => {
  for (const block of document.querySelectorAll("article div.highlight")) {
    if (block.closest(".cell_output")) continue;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(typed(block));
      button.textContent = "Copied";
      setTimeout(() => (button.textContent = "Copy"), 1500);
    });
    block.append(button);
  }
});
