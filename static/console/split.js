// A list with a pane: where there is room, the row that is chosen is shown beside the list, and
// stands in the address.

const ROOM = window.matchMedia("(min-width: 80rem)");
const links = () => [...document.querySelectorAll("#result_list a[data-open]")];

function remember(opened) {
  const address = new URL(window.location);
  if (opened) address.searchParams.set("open", opened);
  else address.searchParams.delete("open");
  window.history.replaceState(null, "", address);
  // Buttons of the pane come back to it.
  const next = document.querySelector("#console-post input[name=next]");
  if (next) next.value = address.pathname + address.search;
  for (const link of links()) {
    if (link.dataset.open === opened) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
}

function show(link) {
  htmx
    .ajax("GET", link.href, { target: "#pane", swap: "innerHTML" })
    .then(() => remember(link.dataset.open));
}

function close() {
  const opened = document.querySelector("#pane [data-opened]")?.dataset.opened;
  document.getElementById("pane").replaceChildren();
  remember(null);
  links().find((link) => link.dataset.open === opened)?.focus();
}

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-close-pane]")) close();
  const link = event.target.closest("#result_list a[data-open]");
  if (!link || !ROOM.matches) return;
  if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  show(link);
});

document.addEventListener("keydown", (event) => {
  const field = event.target.closest("input, textarea, select");
  if (event.key === "Escape" && document.querySelector("#pane [data-opened]") && !field) close();
  const here = event.target.closest("#result_list a[data-open]");
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!here || !step) return;
  event.preventDefault();
  const all = links();
  const next = all[all.indexOf(here) + step];
  next?.focus();
  // While the pane is open it follows.
  if (next && ROOM.matches && document.querySelector("#pane [data-opened]")) show(next);
});

document.addEventListener("DOMContentLoaded", () => {
  const opened = document.querySelector("#pane [data-opened]")?.dataset.opened;
  links().find((link) => link.dataset.open === opened)?.setAttribute("aria-current", "true");
});
