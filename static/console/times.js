// The local time beside UTC: as a second line of the title of the time that the pointer is on, and
// in the text after the times that are marked for it. Without this script UTC stands alone.

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
}

// A title is made when it is needed: a page may have hundreds of times.
document.addEventListener("pointerover", (event) => {
  const time = event.target.closest("time[datetime]:not([data-titled])");
  if (time) addLocalTitle(time);
});
// Also in the parts of a page that are replaced, before they are painted.
new MutationObserver(showLocalTimes).observe(document.documentElement, {
  childList: true,
  subtree: true,
});
