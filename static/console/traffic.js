// The chart of the overview: made once, and redrawn when htmx has brought new figures, so that
// nothing flickers.

(() => {
  const SERIES = { accepted: "Accepted", delivered: "Delivered", failed: "Failed" };
  const figures = () => document.getElementById("traffic-figures");
  const colour = (name) =>
    getComputedStyle(document.documentElement).getPropertyValue(`--inturn-${name}`).trim();
  const clock = (moment) => new Date(moment).toISOString().slice(11, 16);
  let shown = "";
  let moments = [];
  let isRunning = false;
  // The last step is not over, so that its counts are smaller.
  const dashed = ({ p1DataIndex }) =>
    isRunning && p1DataIndex === moments.length - 1 ? [3, 3] : undefined;
  const from = ([item]) => {
    const local = localTime(new Date(moments[item.dataIndex]));
    return `from ${item.label} UTC${local && ` (${local})`}`;
  };

  const options = {
    animation: false,
    responsive: true,
    maintainAspectRatio: false,
    interaction: { mode: "index", intersect: false },
    plugins: {
      legend: { display: false },
      tooltip: { callbacks: { title: from } },
    },
    scales: {
      x: { grid: { display: false }, ticks: { maxTicksLimit: 7, maxRotation: 0 } },
      y: {
        beginAtZero: true,
        suggestedMax: 4,
        border: { display: false },
        ticks: { maxTicksLimit: 5, precision: 0 },
      },
    },
  };

  function draw(chart) {
    const { values } = figures().dataset;
    if (values === shown) return;
    shown = values;
    const counted = JSON.parse(values);
    moments = counted.at;
    isRunning = counted.running;
    chart.data.labels = moments.map(clock);
    for (const dataset of chart.data.datasets) dataset.data = counted[dataset.name];
    chart.update("none");
  }

  function paint(chart) {
    for (const dataset of chart.data.datasets) {
      dataset.borderColor = dataset.backgroundColor = colour(`series-${dataset.name}`);
    }
    chart.options.scales.y.grid = { color: colour("line") };
    for (const axis of Object.values(chart.options.scales)) axis.ticks.color = colour("subtle");
    chart.update("none");
  }

  function begin() {
    const canvas = document.getElementById("traffic-chart");
    if (!canvas) return;
    Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
    const datasets = Object.entries(SERIES).map(([name, label]) => ({
      name, label, data: [], borderWidth: 2, pointRadius: 0, pointHitRadius: 8,
      segment: { borderDash: dashed },
    }));
    const chart = new Chart(canvas, { type: "line", data: { labels: [], datasets }, options });
    draw(chart);
    paint(chart);
    // A canvas is drawn with the fonts that are there.
    document.fonts.ready.then(() => chart.update("none"));
    document.body.addEventListener("htmx:afterSettle", () => draw(chart));
    new MutationObserver(() => paint(chart)).observe(document.documentElement, {
      attributeFilter: ["class"],
    });
  }

  begin();
})();
