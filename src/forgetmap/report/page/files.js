// What leaves the page: CSV, JSON, pictures, the clipboard.

const RISKY_START = /^'*[=+\-@\t\r]/;
const PLAIN_NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/;

/**
 * Records as CSV. A text that a spreadsheet would run as a formula gets a quote before it.
 * @param {Record<string, unknown>[]} records
 */
function asCsv(records) {
  const names = [...new Set(records.flatMap((record) => Object.keys(record)))];
  const lines = records.map((record) => names.map((name) => csvCell(record[name])).join(","));
  return [names.map(csvCell).join(","), ...lines, ""].join("\r\n");
}

function csvCell(value) {
  if (value === null || value === undefined) return "";
  let text = typeof value === "object" ? JSON.stringify(value) : String(value);
  if (typeof value !== "number" && RISKY_START.test(text) && !PLAIN_NUMBER.test(text)) {
    text = `'${text}`;
  }
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** @param {object[]} records */
function asJsonLines(records) {
  return records.map((record) => `${JSON.stringify(record)}\n`).join("");
}

/** Give a file to the reader. */
function download(name, type, content) {
  const address = URL.createObjectURL(new Blob([content], { type }));
  downloadFrom(name, address);
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

function downloadFrom(name, href) {
  const link = make("a", { href, download: fileName(name) });
  document.body.append(link);
  link.click();
  link.remove();
}

/** A name that every file system takes. */
function fileName(name) {
  return name.replace(/[^\w.-]+/g, "-").replace(/^[-.]+|-+$/g, "").slice(-100) || "file";
}

/** Buttons that give a table as CSV and JSON; `records` is asked when one is pressed. */
function tableDownloads(name, records) {
  const csv = () => download(`${name}.csv`, "text/csv", asCsv(records()));
  const json = () =>
    download(`${name}.json`, "application/json", JSON.stringify(records(), null, 1));
  return [
    button("CSV", csv, { "aria-label": `Download ${name} as CSV` }),
    button("JSON", json, { "aria-label": `Download ${name} as JSON` }),
  ];
}

/** Copy, also where the clipboard is not offered to a file. */
async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = make("textarea", { class: "aside", "aria-hidden": "true" });
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}

/** A button that copies the address of what is shown. */
function linkCopier() {
  return button("Copy link", async () => {
    await copyText(location.href);
    announce("Link copied.");
  });
}

/** A picture in SVG as PNG, twice as large as on the screen. */
async function svgAsPng(svg) {
  const image = new Image();
  image.src = svgAddress(svg);
  await image.decode();
  const canvas = make("canvas", {});
  [canvas.width, canvas.height] = [2 * image.naturalWidth, 2 * image.naturalHeight];
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return canvas.toDataURL("image/png");
}

/** An address that shows a picture as an image, in which nothing runs. */
function svgAddress(svg) {
  return `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
}
