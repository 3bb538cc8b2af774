(() => {
  const box = document.body.appendChild(Object.assign(document.createElement("div"), { className: "tip", hidden: true }));
  box.setAttribute("role", "status");
  const minus = "\u2212";
  const write = (v, f) => {
    const size = Math.abs(v), sign = v < 0 ? minus : "";
    if (f.digits !== null) {
      return sign + f.prefix + size.toLocaleString("en-US", { minimumFractionDigits: f.digits, maximumFractionDigits: f.digits }) + f.suffix;
    }
    const [step, name] = [[1e12, "T"], [1e9, "B"], [1e6, "M"], [1e3, "K"]].find(([s]) => size >= s * 0.9995) || [1, ""];
    const scaled = size / step;
    const digits = scaled >= 99.95 || (step === 1 && !(size > 0 && size < 9.995)) ? 0 : scaled >= 9.995 ? 1 : 2;
    return sign + f.prefix + scaled.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits }) + name + f.suffix;
  };
  const place = (x, y) => {
    box.hidden = false;
    const { width, height } = box.getBoundingClientRect();
    box.style.left = Math.max(4, x + 18 + width > innerWidth ? x - width - 18 : x + 18) + "px";
    box.style.top = Math.max(4, Math.min(y - height / 2, innerHeight - height - 4)) + "px";
  };
  const row = (name, value, colour, strong) => {
    const line = box.appendChild(document.createElement("div"));
    if (strong) line.className = "sum";
    const swatch = line.appendChild(document.createElement("i"));
    swatch.style.background = colour || "transparent";
    line.appendChild(document.createElement("span")).textContent = name;
    line.appendChild(document.createElement("b")).textContent = value;
  };
  const heading = (text) => {
    box.replaceChildren(Object.assign(document.createElement("strong"), { textContent: text }));
  };
  const NS = "http://www.w3.org/2000/svg";
  const element = (svg, tag, attributes) => {
    const made = svg.appendChild(document.createElementNS(NS, tag));
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    return made;
  };
  document.querySelectorAll("svg.chart + script:not(.numbers)").forEach((script) => {
    const svg = script.previousElementSibling, data = JSON.parse(script.textContent);
    let at = data.x.length - 1, marks = [];
    const clear = () => { marks.forEach((m) => m.remove()); marks = []; box.hidden = true; };
    const show = (k) => {
      clear();
      at = Math.max(0, Math.min(k, data.x.length - 1));
      const x = data.x[at], [low, high, y0, y1] = data.y;
      marks.push(element(svg, "line", { x1: x, x2: x, y1: data.box[0], y2: data.box[1], class: "cross" }));
      heading(data.labels[at]);
      const known = data.series.filter((s) => s.values[at] !== null && s.values[at] !== undefined);
      if (data.total) {
        const stacked = known.filter((s) => !s.dot);
        if (stacked.length) row(data.total, write(stacked.reduce((sum, s) => sum + s.values[at], 0), data.format), null, true);
      }
      known.slice().reverse().forEach((s) => {
        row(s.name, write(s.values[at], data.format), s.colour);
        if (s.dot) {
          const y = y0 + ((s.values[at] - low) / (high - low)) * (y1 - y0);
          marks.push(element(svg, "circle", { cx: x, cy: y, r: 3.5, fill: s.colour, class: "dot" }));
        }
      });
      const from = svg.getScreenCTM();
      place(from.a * x + from.e, from.d * (data.box[0] + data.box[1]) / 2 + from.f);
    };
    svg.addEventListener("pointermove", (event) => {
      const from = svg.getScreenCTM(), x = (event.clientX - from.e) / from.a;
      let best = 0;
      data.x.forEach((p, k) => { if (Math.abs(p - x) < Math.abs(data.x[best] - x)) best = k; });
      show(best);
    });
    svg.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -13, PageDown: 13 }[event.key];
      if (step) { event.preventDefault(); show(at + step); }
      if (event.key === "Escape") clear();
    });
    svg.addEventListener("pointerleave", clear);
    svg.addEventListener("blur", clear);
  });
  // Every chart's numbers as a file.
  const field = (v) => (v === null || v === undefined ? "" : /[",\n]/.test(String(v)) ? '"' + String(v).replaceAll('"', '""') + '"' : String(v));
  const download = (name, rows) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob(["\ufeff" + rows.map((r) => r.map(field).join(",")).join("\r\n") + "\r\n"], { type: "text/csv" }));
    link.download = name.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "").toLowerCase() + ".csv";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  const offer = (after, name, rows) => {
    const button = Object.assign(document.createElement("button"), { className: "take", textContent: "Numbers (CSV)" });
    button.type = "button";
    button.addEventListener("click", () => download(name, rows()));
    after.insertAdjacentElement("afterend", button);
  };
  const page = document.querySelector("h1").textContent;
  document.querySelectorAll("svg.chart").forEach((svg) => {
    const scripts = [];
    for (let next = svg.nextElementSibling; next && next.tagName === "SCRIPT"; next = next.nextElementSibling) scripts.push(next);
    if (!scripts.length) return;
    const held = scripts.find((s) => s.className === "numbers");
    offer(scripts.at(-1), page + " " + svg.dataset.title, () => {
      const data = JSON.parse((held || scripts[0]).textContent);
      if (held) return [data.header, ...data.rows];
      return [["at", ...data.series.map((s) => s.name)], ...data.labels.map((l, k) => [data.keys ? data.keys[k] : l, ...data.series.map((s) => s.values[k])])];
    });
  });
  document.querySelectorAll(".scroll > table[id]").forEach((table) => {
    const text = (row) => [...row.cells].map((cell) => cell.innerText.replace(/\s+/g, " ").trim());
    offer(table.parentElement, page + " " + (table.id || "table"), () => [...table.rows].map(text));
  });
  // A shadow says that a table goes on to the right.
  const cue = (one) => one.classList.toggle("more", one.scrollWidth - one.clientWidth - one.scrollLeft > 4);
  // Wide charts scroll on a narrow screen; their vertical axis stays in sight, and so does the link to their numbers.
  document.querySelectorAll("figure.wide, #layers, #tenure, #triangle").forEach((one) => {
    const svg = one.querySelector("svg.chart");
    if (!svg) return;
    const pan = Object.assign(document.createElement("div"), { className: "pan" });
    pan.append(...[...one.childNodes].slice([...one.childNodes].indexOf(svg)));
    one.append(pan);
    const labels = [...svg.querySelectorAll("text.axis[text-anchor=end]")], [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
    const edge = Math.max(0, ...labels.map((label) => Number(label.getAttribute("x")))) + 3;
    const pinned = pan.insertBefore(Object.assign(document.createElement("div"), { className: "pinned" }), svg);
    pinned.setAttribute("aria-hidden", "true");
    const axis = element(pinned, "svg", { viewBox: `0 0 ${edge} ${height}` });
    labels.forEach((label) => axis.append(label.cloneNode(true)));
    const fit = () => {
      const drawn = svg.getBoundingClientRect(), scale = drawn.width / width;
      axis.setAttribute("width", edge * scale);
      axis.setAttribute("height", drawn.height);
    };
    fit();
    addEventListener("resize", fit);
  });
  // Charts over time that are wider than the screen begin at their end: the forecast.
  document.querySelectorAll("figure.wide:not(#cumulative):not(#columns):not(#grid), #layers").forEach((one) => { one.scrollLeft = one.scrollWidth; });
  document.querySelectorAll(".scroll, figure.wide, #layers, #tenure, #triangle").forEach((one) => {
    one.addEventListener("scroll", () => cue(one));
    cue(one);
    addEventListener("resize", () => cue(one));
  });
  // On paper nothing is folded away.
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((one) => { one.open = true; }));
  // Tables whose headers are buttons are sorted by what stands in their cells.
  document.querySelectorAll("th[data-sort]").forEach((head) => {
    head.tabIndex = 0;
    const sort = () => {
      const body = head.closest("table").tBodies[0], k = head.cellIndex, number = head.dataset.sort === "number";
      const down = head.getAttribute("aria-sort") === "descending" ? 1 : head.getAttribute("aria-sort") === "ascending" ? -1 : number ? -1 : 1;
      const key = (row) => { const cell = row.cells[k]; const v = cell.dataset.value ?? cell.textContent; return number ? (v === "" ? NaN : Number(v)) : v.toLowerCase(); };
      const rows = [...body.rows].map((row) => [key(row), row]);
      rows.sort(([a], [b]) => (number ? (Number.isNaN(a) ? 1 : Number.isNaN(b) ? -1 : down * (a - b)) : down * a.localeCompare(b)));
      head.parentElement.querySelectorAll("[aria-sort]").forEach((one) => one.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down > 0 ? "ascending" : "descending");
      body.append(...rows.map(([, row]) => row));
    };
    head.addEventListener("click", sort);
    head.addEventListener("keydown", (event) => { if (event.key === "Enter") sort(); });
  });
  const list = document.querySelectorAll("#firms tbody tr");
  document.querySelectorAll("[data-row]").forEach((mark) => {
    const cells = list[mark.dataset.row].cells;
    mark.addEventListener("pointermove", (event) => {
      heading(cells[0].textContent);
      row("Last 52 weeks", cells[2].textContent);
      row("Next 52 weeks", cells[3].textContent);
      row("Change", cells[4].textContent);
      place(event.clientX, event.clientY);
    });
    mark.addEventListener("pointerleave", () => { box.hidden = true; });
    mark.addEventListener("click", () => cells[0].firstElementChild.click());
  });
  document.querySelectorAll("[data-tip]").forEach((mark) => {
    mark.addEventListener("pointermove", (event) => {
      const [title, ...lines] = mark.dataset.tip.split("\n");
      heading(title);
      lines.forEach((line) => { const [name, value] = line.split("\t"); row(name, value || "", null); });
      place(event.clientX, event.clientY);
    });
    mark.addEventListener("pointerleave", () => { box.hidden = true; });
  });
  const filter = document.querySelector("input[data-filter]");
  if (filter) {
    const rows = [...document.querySelectorAll(filter.dataset.filter + " tbody tr")];
    filter.addEventListener("input", () => {
      const wanted = filter.value.toLowerCase();
      rows.forEach((line) => { line.hidden = !line.textContent.toLowerCase().includes(wanted); });
    });
  }
})();
