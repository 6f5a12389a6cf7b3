// The little that the console's own pages need beside Unfold's scripts.

// htmx would write an inline style and evaluate attributes; our pages use neither.
htmx.config.includeIndicatorStyles = false;
htmx.config.allowEval = false;

// An icon is a word in a font of icons, which a screen reader would read.
function silenceIcons() {
  for (const icon of document.querySelectorAll(".material-symbols-outlined:not([aria-hidden])")) {
    icon.setAttribute("aria-hidden", "true");
  }
}
document.addEventListener("DOMContentLoaded", silenceIcons);
document.addEventListener("htmx:afterSettle", silenceIcons);

// The box of a select with a search has the name of its value only, and none while it is empty.
function nameSelectBoxes() {
  for (const box of document.querySelectorAll(".select2-selection[role=combobox]")) {
    const select = box.closest(".select2-container").previousElementSibling;
    const label = document.querySelector(`label[for="${select?.id}"]`);
    if (!label) continue;
    label.id ||= `${select.id}_label`;
    const value = box.querySelector(".select2-selection__rendered");
    box.setAttribute("aria-labelledby", `${label.id} ${value.id}`);
    value.setAttribute("aria-labelledby", label.id);
  }
}
// A box for several values has no name at all.
function nameSearchFields() {
  for (const field of document.querySelectorAll(".select2-selection--multiple input")) {
    const select = field.closest(".select2-container").previousElementSibling;
    const label = document.querySelector(`label[for="${select?.id}"]`);
    if (label) field.setAttribute("aria-label", label.textContent.trim());
  }
}
// jQuery makes the boxes when it is ready, before or after the page is loaded.
window.addEventListener("load", () => window.django?.jQuery?.(() => {
  nameSelectBoxes();
  nameSearchFields();
}));

// Parts of a page that scroll are regions, which all have one name otherwise.
window.addEventListener("load", () => {
  for (const part of document.querySelectorAll(".simplebar-content-wrapper")) {
    part.setAttribute("aria-label", part.closest("#nav-sidebar-apps") ? "Menu" : "Table");
  }
});

document.addEventListener("submit", (event) => {
  const question = event.submitter?.dataset.confirm;
  if (!question) return;
  let text = question;
  try {
    text = withLocalTimes(question);
  } catch {
    // The question matters more than its times.
  }
  if (!window.confirm(text)) event.preventDefault();
});

// A secret is easily copied with a line break too many. Of a text with two forms the shown one is
// copied.
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const whole = document.getElementById(button.dataset.copy);
  const shown = [...whole.querySelectorAll("pre")].find((form) => form.offsetParent !== null);
  copyText((shown ?? whole).textContent.trim()).then(() => {
    button.textContent = "Copied";
  });
});

// Browsers have a clipboard only on pages by https and of this machine.
async function copyText(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const field = document.createElement("textarea");
  field.value = text;
  document.body.append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
}

// Of a form of filters only the filled fields go into the address.
document.addEventListener("formdata", (event) => {
  if (!event.target.hasAttribute("data-drop-empty")) return;
  for (const [name, value] of [...event.formData]) {
    if (!value) event.formData.delete(name);
  }
});
