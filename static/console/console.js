// The little that the console's own pages need beside Unfold's scripts.

// htmx would write an inline style and evaluate attributes; our pages use neither.
htmx.config.includeIndicatorStyles = false;
htmx.config.allowEval = false;

document.addEventListener("submit", (event) => {
  const question = event.submitter?.dataset.confirm;
  if (question && !window.confirm(question)) {
    event.preventDefault();
  }
});

// A secret is easily copied with a line break too many.
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const copied = document.getElementById(button.dataset.copy).textContent.trim();
  navigator.clipboard.writeText(copied).then(() => {
    button.textContent = "Copied";
  });
});
