// The charts of the history, drawn from the figures that stand in the page.

(() => {
  const figures = document.getElementById("history-figures");
  if (!figures) return;
  const counted = JSON.parse(figures.dataset.values);
  const colour = (name) =>
    getComputedStyle(document.documentElement).getPropertyValue(`--inturn-${name}`).trim();
  const iso = (moment) => new Date(moment).toISOString();
  const labels = counted.at.map(
    (moment) => `${iso(moment).slice(0, 10)} ${iso(moment).slice(11, 16)}`,
  );

  const from = ([item]) => {
    const local = localTime(new Date(counted.at[item.dataIndex]));
    return `from ${item.label} UTC${local && ` (${local})`}`;
  };

  // A label a day, at midnight; of a single day every third hour.
  const days = counted.at.flatMap((moment, place) => (moment % 86_400_000 === 0 ? [place] : []));
  const stride = Math.ceil(days.length / 10);
  const named = new Set(
    counted.is_by_day
      ? days.filter((_, number) => number % stride === 0)
      : counted.at.flatMap((moment, place) => (moment % 10_800_000 === 0 ? [place] : [])),
  );
  const tick = (_, place) => {
    if (!named.has(place)) return "";
    return counted.is_by_day ? labels[place].slice(5, 10) : labels[place].slice(11);
  };
  const duration = (number) =>
    number < 1000
      ? `${Math.round(number)} ms`
      : `${(number / 1000).toLocaleString("en", { maximumFractionDigits: 1 })} s`;

  Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
  // Chart.js would give its own colours to sets without one, and keep them.
  Chart.defaults.plugins.colors.enabled = false;
  // A line needs two points: one that stands alone is a dot.
  const dot = ({ dataset: { data }, dataIndex: place }) =>
    (data[place - 1] ?? data[place + 1] ?? null) === null ? 3 : 0;

  const filled = ({ series, type = "line", ...set }) => ({
    ...{ series, type, data: counted[series] },
    ...{ borderColor: colour(set.colour), backgroundColor: colour(set.colour) },
    ...{ borderWidth: type === "bar" ? 0 : 2, pointRadius: dot, pointHitRadius: 8, ...set },
  });

  function make(id, datasets, scales, label) {
    return new Chart(document.getElementById(id), {
      type: "line",
      data: { labels, datasets: datasets.map(filled) },
      options: {
        animation: false,
        responsive: true,
        maintainAspectRatio: false,
        interaction: { mode: "index", intersect: false },
        plugins: {
          legend: { display: false },
          tooltip: { callbacks: { title: from, label } },
        },
        scales: {
          x: {
            stacked: true,
            grid: { display: false },
            ticks: { callback: tick, autoSkip: false, maxRotation: 0, color: colour("subtle") },
          },
          ...Object.fromEntries(
            Object.entries(scales).map(([name, axis]) => [
              name,
              { ...axis, ticks: { ...axis.ticks, color: colour("subtle") } },
            ]),
          ),
        },
      },
    });
  }

  const percentiles = (kind) =>
    make(
      `history-${kind}`,
      ["p50", "p95", "p99"].map((place) => ({
        series: `${kind}_${place}`,
        colour: `series-${place}`,
        label: place,
      })),
      {
        y: {
          beginAtZero: true,
          border: { display: false },
          grid: { color: colour("line") },
          ticks: { maxTicksLimit: 5, callback: duration },
        },
      },
      (item) => `${item.dataset.label}: ${duration(item.raw)}`,
    );

  const stacked = { type: "bar", yAxisID: "count", stack: "settled" };
  const draw = () => [
    make(
      "history-success",
      [
        { series: "success", colour: "series-success", label: "success", yAxisID: "y" },
        { series: "delivered", colour: "pale-delivered", label: "delivered", ...stacked },
        { series: "failed", colour: "series-failed", label: "failed", ...stacked },
      ],
      {
        y: {
          max: 100,
          border: { display: false },
          grid: { color: colour("line") },
          ticks: { maxTicksLimit: 5, callback: (number) => `${number} %` },
        },
        count: {
          position: "right",
          stacked: true,
          beginAtZero: true,
          border: { display: false },
          grid: { drawOnChartArea: false },
          ticks: { maxTicksLimit: 5, precision: 0 },
        },
      },
      (item) =>
        item.dataset.series === "success"
          ? `success: ${item.raw} %`
          : `${item.dataset.label}: ${item.raw.toLocaleString("en")}`,
    ),
    percentiles("latency"),
    percentiles("response"),
  ];

  let charts = draw();
  // A canvas is drawn with the fonts that are there.
  document.fonts.ready.then(() => charts.forEach((chart) => chart.update("none")));
  // In other colours, when the theme changes.
  new MutationObserver(() => {
    for (const chart of charts) chart.destroy();
    charts = draw();
  }).observe(document.documentElement, { attributeFilter: ["class"] });
})();
