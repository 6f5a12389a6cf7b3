// The local time beside UTC: as a second line of the title of the time that the pointer is on, in
// the text after the times that are marked for it, in questions, and after fields of times. Without
// this script UTC stands alone.

const localClock = (options) => new Intl.DateTimeFormat("sv-SE", options);
const LOCAL_DAY = localClock({ dateStyle: "short" });
const LOCAL_SECOND = localClock({ timeStyle: "medium" });
const LOCAL_MINUTE = localClock({ timeStyle: "short" });
const LOCAL_ZONE = new Intl.DateTimeFormat("en-GB", { timeZoneName: "short" });

// The local time with its zone, such as 19:05 CET, and with its day where that is another one;
// nothing in places that have UTC.
function localTime(moment, { hasSeconds = false, hasDay = false } = {}) {
  if (moment.getTimezoneOffset() === 0) return "";
  const day = LOCAL_DAY.format(moment);
  const isOtherDay = day !== moment.toISOString().slice(0, 10);
  const clock = (hasSeconds ? LOCAL_SECOND : LOCAL_MINUTE).format(moment);
  const zone = LOCAL_ZONE.formatToParts(moment).find((part) => part.type === "timeZoneName").value;
  return `${hasDay || isOtherDay ? `${day} ` : ""}${clock} ${zone}`;
}

function addLocalTitle(time) {
  const moment = new Date(time.dateTime);
  const local = localTime(moment, { hasSeconds: true, hasDay: true });
  time.dataset.titled = "";
  if (!local) return;
  const place = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const utc = time.title || `${moment.toISOString().slice(0, 19).replace("T", " ")} UTC`;
  time.title = `${utc}\n${local}, ${place}`;
}

const UTC_TIME = /\b(\d{4}-\d\d-\d\d) (\d\d:\d\d(:\d\d(?:\.\d{3})?)?) UTC\b/g;

// The text, with the local time after each UTC time in it.
function withLocalTimes(text) {
  return text.replace(UTC_TIME, (utc, day, clock, seconds) => {
    const local = localTime(new Date(`${day}T${clock}Z`), { hasSeconds: Boolean(seconds) });
    return local ? `${utc} (${local})` : utc;
  });
}

// The title of a bar of a chart has the hour and minute only.
function addLocalToBar(bar) {
  const local = localTime(new Date(bar.dataset.from));
  bar.dataset.titled = "";
  const title = bar.querySelector("title");
  if (local) title.textContent = title.textContent.replace(" UTC", ` UTC (${local})`);
}

// The notes with the local time, by their fields of times, which are in UTC.
const fieldNotes = new WeakMap();
let notesMade = 0;

function showLocalOfField(field) {
  if (!fieldNotes.has(field)) {
    const made = document.createElement("span");
    notesMade += 1;
    made.id = `local-${notesMade}`;
    made.className = "inturn-local inturn-note";
    // It describes the field, and is no part of its name, even within its label.
    made.setAttribute("aria-hidden", "true");
    const described = [field.getAttribute("aria-describedby"), made.id].filter(Boolean);
    field.setAttribute("aria-describedby", described.join(" "));
    fieldNotes.set(field, made);
    field.after(made);
  }
  const moment = new Date(field.valueAsNumber);
  const local = Number.isNaN(moment.getTime()) ? "" : localTime(moment, { hasDay: true });
  fieldNotes.get(field).textContent = local ? `= ${local}` : "";
}

function showLocalTimes() {
  for (const time of document.querySelectorAll("time[data-local]")) {
    delete time.dataset.local;
    const hasSeconds = /\d:\d\d:\d\d/.test(time.textContent);
    const local = localTime(new Date(time.dateTime), { hasSeconds });
    if (!local) continue;
    const beside = document.createElement("span");
    beside.className = "inturn-local";
    beside.textContent = ` (${local})`;
    time.after(beside);
  }
  for (const field of document.querySelectorAll("input[type=datetime-local]")) {
    if (!fieldNotes.has(field)) showLocalOfField(field);
  }
}

// A title is made when it is needed: a page may have hundreds of times.
document.addEventListener("pointerover", (event) => {
  const time = event.target.closest("time[datetime]:not([data-titled])");
  if (time) addLocalTitle(time);
  const bar = event.target.closest("[data-from]:not([data-titled])");
  if (bar) addLocalToBar(bar);
});
document.addEventListener("input", (event) => {
  if (event.target.type === "datetime-local") showLocalOfField(event.target);
});
// Also in the parts of a page that are replaced, before they are painted.
new MutationObserver(showLocalTimes).observe(document.documentElement, {
  childList: true,
  subtree: true,
});
