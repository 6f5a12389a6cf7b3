// The switch *Live* above a list: the rows on the screen are refreshed where they stand, and the
// number of new ones is shown. Selection, focus, scroll and the open row stay.

const LIVE_MS = 4000;
// The counts of the tabs cost more than the rows.
const COUNT_EVERY = 5;
// As many pages are put above the list; with more new rows the list begins anew.
const MOST_PAGES = 4;

function setUpLive(line) {
  const box = line.querySelector("input");
  const button = line.querySelector("button");
  const key = `inturn-live:${window.location.pathname}`;
  const table = document.getElementById("result_list");
  const shown = new Map();
  let ticks = 0;
  let timer = 0;
  let isAsking = false;

  const bodies = (of) => [...of.querySelectorAll(":scope > tbody")];
  const idsOf = (element) => element.dataset.ids.split(",").filter(Boolean);
  const isBefore = (a, b) => BigInt(a) < BigInt(b);
  const newest = () => [...shown.keys()].reduce((a, b) => (isBefore(a, b) ? b : a), "0");

  if (table) {
    const ids = idsOf(line);
    bodies(table).forEach((body, place) => shown.set(ids[place], body));
  }

  async function read(bounds) {
    const address = new URL(window.location);
    for (const name of ["before", "after", "open"]) address.searchParams.delete(name);
    for (const [name, value] of Object.entries(bounds)) address.searchParams.set(name, value);
    const headers = {
      "HX-Request": "true", "HX-Target": "live-rows", "X-Inturn-Newest": newest(),
    };
    const answer = await fetch(address, { headers });
    if (answer.headers.has("HX-Refresh") || !answer.ok) {
      window.location.reload();
      return null;
    }
    const text = await answer.text();
    const rows = new DOMParser().parseFromString(text, "text/html").getElementById("live-rows");
    const read = rows?.querySelector("#result_list");
    return (
      rows && {
        ids: idsOf(rows),
        bodies: read ? bodies(read) : [],
        count: rows.dataset.new,
        hasMore: "more" in rows.dataset,
      }
    );
  }

  async function tick() {
    timer = 0;
    if (!box.checked || document.hidden) return;
    isAsking = true;
    try {
      await refreshAll();
    } catch {
      // The server does not answer: the next try is in a few seconds.
    } finally {
      isAsking = false;
    }
    ticks += 1;
    const tabs = document.querySelector(".inturn-tabs");
    if (tabs && ticks % COUNT_EVERY === 0 && !tabs.contains(document.activeElement)) {
      htmx.trigger(tabs, "inturn:count");
    }
    next();
  }

  async function refreshAll() {
    let before = String(BigInt(newest()) + 1n);
    let page = await read(shown.size ? { before } : {});
    if (page) offer(page);
    // New rows have made the list longer than a page.
    for (let number = 0; page && number < MOST_PAGES; number += 1) {
      refresh(page, before);
      if (!page.hasMore) break;
      before = page.ids.at(-1);
      if (![...shown.keys()].some((id) => isBefore(id, before))) break;
      page = await read({ before });
    }
  }

  function offer(page) {
    const count = shown.size ? page.count : String(page.ids.length || "");
    button.hidden = !count || count === "0";
    if (!button.hidden) button.textContent = `${count} new: show`;
  }

  function next() {
    if (!timer && !isAsking && box.checked && !document.hidden) timer = setTimeout(tick, LIVE_MS);
  }

  function refresh(page, before) {
    const isThere = new Set(page.ids);
    page.ids.forEach((id, place) => {
      if (shown.has(id)) refreshRow(shown.get(id), page.bodies[place]);
    });
    for (const [id, body] of shown) {
      // A row that does not match the filters any more stays until the list is opened again.
      const isOlder = page.hasMore && isBefore(id, page.ids.at(-1));
      const isWithin = isBefore(id, before) && !isOlder;
      if (isWithin) body.classList.toggle("inturn-left", !isThere.has(id));
    }
  }

  function refreshRow(body, fresh) {
    const cells = [...body.querySelectorAll(":scope > tr > *")];
    const read = [...fresh.querySelectorAll(":scope > tr > *")];
    if (cells.length !== read.length) return;
    cells.forEach((cell, place) => {
      const isKept = cell.querySelector("input, a[data-open]");
      if (isKept || servedHtml(cell) === servedHtml(read[place])) return;
      const focused = cell.contains(document.activeElement)
        ? [...cell.querySelectorAll("a, button")].indexOf(document.activeElement)
        : -1;
      cell.replaceChildren(...document.adoptNode(read[place]).childNodes);
      if (focused >= 0) cell.querySelectorAll("a, button")[focused]?.focus();
    });
  }

  // The HTML of a cell without the additions of times.js.
  function servedHtml(cell) {
    if (!cell.querySelector("time")) return cell.innerHTML;
    const copy = cell.cloneNode(true);
    for (const local of copy.querySelectorAll(".inturn-local")) local.remove();
    for (const time of copy.querySelectorAll("time")) {
      for (const name of ["title", "data-titled", "data-local"]) time.removeAttribute(name);
    }
    return copy.innerHTML;
  }

  async function showNew() {
    button.disabled = true;
    try {
      if (!table || parseInt(button.textContent.replace(",", ""), 10) > 25 * MOST_PAGES) {
        beginAnew();
        return;
      }
      for (let number = 0; number < MOST_PAGES; number += 1) {
        const page = await read({ after: newest() });
        if (!page?.ids.length) break;
        addAbove(page);
      }
    } finally {
      button.disabled = false;
    }
    button.hidden = true;
    box.focus();
  }

  function addAbove(page) {
    const first = bodies(table)[0];
    const height = document.documentElement.scrollHeight;
    page.ids.forEach((id, place) => {
      if (shown.has(id)) return;
      const body = document.adoptNode(page.bodies[place]);
      table.insertBefore(body, first);
      shown.set(id, body);
    });
    // Whoever reads further down goes on there.
    if (window.scrollY > 0) {
      window.scrollBy(0, document.documentElement.scrollHeight - height);
    }
  }

  function beginAnew() {
    const address = new URL(window.location);
    for (const name of ["before", "after", "open"]) address.searchParams.delete(name);
    window.location.assign(address);
  }

  box.addEventListener("change", () => {
    sessionStorage.setItem(key, box.checked ? "1" : "");
    clearTimeout(timer);
    timer = 0;
    if (box.checked) tick();
    else button.hidden = true;
  });
  button.addEventListener("click", showNew);
  document.addEventListener("visibilitychange", () => {
    clearTimeout(timer);
    timer = 0;
    if (!document.hidden && box.checked && !isAsking) tick();
  });
  box.checked = sessionStorage.getItem(key) === "1";
  next();
}

document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll("[data-live]").forEach(setUpLive);
});
