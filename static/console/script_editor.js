// Line numbers beside the text area of a script, where the line of an error is marked.

document.addEventListener("DOMContentLoaded", () => {
  const area = document.querySelector("textarea.inturn-script");
  if (!area) return;
  const gutter = document.createElement("pre");
  gutter.className = "inturn-gutter";
  gutter.setAttribute("aria-hidden", "true");
  const frame = document.createElement("div");
  frame.className = "inturn-editor";
  area.before(frame);
  frame.append(gutter, area);
  area.wrap = "off";

  const lines = (from, to) =>
    Array.from({ length: Math.max(to - from + 1, 0) }, (_, index) => `${from + index}\n`).join("");

  function draw(marked) {
    const count = area.value.split("\n").length;
    const mark = document.createElement("mark");
    if (marked >= 1 && marked <= count) mark.textContent = `${marked}\n`;
    const before = mark.textContent ? marked - 1 : count;
    gutter.replaceChildren(lines(1, before), mark, lines(before + 2, count));
    gutter.scrollTop = area.scrollTop;
    if (mark.textContent) area.setAttribute("aria-invalid", "true");
    else area.removeAttribute("aria-invalid");
  }

  function go(line, column) {
    const before = area.value.split("\n").slice(0, line - 1);
    const start = before.reduce((length, text) => length + text.length + 1, 0) + column - 1;
    area.focus();
    area.setSelectionRange(start, start);
    const height = parseFloat(getComputedStyle(area).lineHeight);
    area.scrollTop = Math.max((line - 4) * height, 0);
  }

  area.addEventListener("input", () => draw());
  area.addEventListener("scroll", () => (gutter.scrollTop = area.scrollTop));
  document.addEventListener("click", (event) => {
    const place = event.target.closest("[data-script-go]")?.dataset.scriptGo;
    if (place) go(...place.split(":").map(Number));
  });
  document.body.addEventListener("htmx:afterSwap", (event) => {
    const line = Number(event.target.querySelector("[data-script-line]")?.dataset.scriptLine);
    // A script that can be read may have failed when it was tried: that line stays marked.
    const { id } = event.target;
    if (id === "script-tested" || (id === "script-checked" && line)) draw(line);
  });
  draw(Number(area.dataset.line));
});
