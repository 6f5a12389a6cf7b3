// After a refused form the first wrong field has the focus; the banner's links lead to the others.

function focusField(id) {
  const field = document.getElementById(id);
  if (!field) return;
  // A select with a search hides itself behind a box of its own.
  const box = field.parentElement.querySelector(".select2-selection");
  const input = field.querySelector("input:checked, input") ?? field;
  (box ?? input).focus();
  field.parentElement.scrollIntoView({ block: "center" });
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("[data-focus]");
  if (!link) return;
  event.preventDefault();
  focusField(link.dataset.focus);
});

// jQuery makes the boxes of selects when it is ready, before or after the page is loaded.
window.addEventListener("load", () => {
  const first = document.querySelector(".inturn-errors [data-focus]");
  if (first) django.jQuery(() => focusField(first.dataset.focus));
});
