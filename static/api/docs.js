// Tries calls with the key that was typed in, which is kept nowhere, and finds calls by a word.

function openTarget() {
  const target = document.getElementById(location.hash.slice(1));
  if (target instanceof HTMLDetailsElement) target.open = true;
  target?.scrollIntoView?.();
}
window.addEventListener("hashchange", openTarget);

document.getElementById("key-form").addEventListener("submit", (event) => event.preventDefault());

document.getElementById("find").addEventListener("input", (event) => {
  const words = event.target.value.toLowerCase().split(/\s+/);
  for (const call of document.querySelectorAll(".call")) {
    const text = call.querySelector("summary").textContent.toLowerCase();
    call.hidden = !words.every((word) => text.includes(word));
  }
});

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (!form.dataset.path) return;
  event.preventDefault();
  const shown = form.querySelector("output");
  shown.textContent = "…";
  const answer = await send(form).catch((error) => String(error));
  const text = document.createElement("pre");
  text.tabIndex = 0;
  text.textContent = answer;
  shown.replaceChildren(text);
});

async function send(form) {
  const { method } = form.dataset;
  const query = new URLSearchParams();
  const headers = {};
  const key = document.getElementById("key").value.trim();
  if (key) headers.Authorization = `Bearer ${key}`;
  let path = form.dataset.path;
  let body;
  for (const field of form.querySelectorAll("[data-in]")) {
    if (field.dataset.in === "path") {
      path = path.replace(`{${field.name}}`, encodeURIComponent(field.value));
    } else if (field.dataset.in === "body") {
      body = field.value;
      headers["Content-Type"] ??= "application/json";
    } else if (field.dataset.in === "type") {
      headers["Content-Type"] = field.value;
    } else if (field.value && field.dataset.in === "header") {
      headers[field.name] = field.value;
    } else if (field.value) {
      query.set(field.name, field.value);
    }
  }
  const url = query.size ? `${path}?${query}` : path;
  // Without cookies: a call has the rights of its key only.
  const response = await fetch(url, { method, headers, body, credentials: "omit" });
  const text = await response.text();
  return `${method} ${url}\n${response.status} ${response.statusText}\n\n${pretty(text)}`;
}

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

openTarget();
