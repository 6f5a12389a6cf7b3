// The search field in the header: results while typing, chosen by keys or with the mouse.
//
// The focus stays in the field; aria-activedescendant names the chosen result.

const WAIT_MS = 150;

function setUpOmnibox(box) {
  const field = box.querySelector("input");
  const panel = box.querySelector(".inturn-omnibox-panel");
  const note = panel.querySelector("[role=status]");
  const list = panel.querySelector("[role=listbox]");
  let timer = 0;
  let asked = null;
  let chosen = -1;

  const options = () => [...list.querySelectorAll("[role=option]")];

  function choose(number) {
    const all = options();
    chosen = all.length ? (number + all.length) % all.length : -1;
    for (const [place, option] of all.entries()) {
      option.setAttribute("aria-selected", String(place === chosen));
    }
    if (chosen < 0) field.removeAttribute("aria-activedescendant");
    else {
      field.setAttribute("aria-activedescendant", all[chosen].id);
      all[chosen].scrollIntoView({ block: "nearest" });
    }
  }

  function open(isOpen) {
    panel.hidden = !isOpen;
    field.setAttribute("aria-expanded", String(isOpen));
  }

  function show(answer, text) {
    let number = 0;
    list.replaceChildren(...answer.groups.map((group) => shownGroup(group, () => number++)));
    const count = options().length;
    note.textContent =
      answer.mistake ||
      (!text ? note.dataset.hint : count ? "" : "Nothing found.");
    note.classList.toggle("inturn-cause", Boolean(answer.mistake));
    choose(count ? 0 : -1);
    open(true);
  }

  async function ask() {
    asked?.abort();
    asked = new AbortController();
    const { signal } = asked;
    const text = field.value.trim();
    if (!text) {
      show({ groups: [], mistake: "" }, text);
      return true;
    }
    try {
      const answer = await fetch(`${box.dataset.omnibox}?q=${encodeURIComponent(text)}`, {
        signal,
        headers: { Accept: "application/json" },
      });
      // A user who was signed out is sent to the login.
      if (answer.redirected) window.location.reload();
      else if (answer.ok) {
        show(await answer.json(), text);
        return true;
      }
    } catch (error) {
      if (error.name !== "AbortError") throw error;
    }
    return false;
  }

  async function go(event) {
    // Whoever types fast presses Enter before the results are there.
    if (timer) {
      clearTimeout(timer);
      timer = 0;
      if (!(await ask())) return;
    }
    const address = options()[chosen]?.href;
    if (!address) return;
    if (event.ctrlKey || event.metaKey) window.open(address, "_blank", "noopener");
    else window.location.assign(address);
  }

  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      timer = 0;
      ask();
    }, WAIT_MS);
  });
  field.addEventListener("focus", () => {
    if (panel.hidden) ask();
  });
  field.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      if (panel.hidden) open(true);
      choose(chosen + step);
    } else if (event.key === "Enter") {
      event.preventDefault();
      go(event);
    } else if (event.key === "Escape") {
      event.preventDefault();
      if (panel.hidden) field.blur();
      open(false);
    }
  });
  document.addEventListener("pointerdown", (event) => {
    if (!box.contains(event.target)) open(false);
  });
  box.addEventListener("focusout", (event) => {
    if (!box.contains(event.relatedTarget)) open(false);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    field.focus();
    field.select();
  });
}

function shownGroup(group, next) {
  const shown = document.createElement("div");
  shown.setAttribute("role", "group");
  shown.setAttribute("aria-label", group.title);
  const title = textIn("div", group.title, "inturn-omnibox-group");
  title.setAttribute("aria-hidden", "true");
  shown.append(
    title,
    ...group.hits.map((hit) => {
      const option = document.createElement("a");
      option.id = `omnibox-${next()}`;
      option.href = hit.address;
      option.tabIndex = -1;
      option.setAttribute("role", "option");
      option.append(
        textIn("span", hit.title, "inturn-omnibox-title"),
        textIn("span", hit.detail, "inturn-note"),
      );
      return option;
    }),
  );
  return shown;
}

function textIn(tag, text, name) {
  const element = document.createElement(tag);
  element.textContent = text;
  element.className = name;
  return element;
}

document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll("[data-omnibox]").forEach(setUpOmnibox);
});
