// A report in one file: everything is in this document, packed.

/** Items stand one after the other, each text once; they are used by column. */
function columnsOf({ names, rows }) {
  const cell = (row, place) => (typeof row[place]?.[0] === "number" ? row[row[place][0]] : row[place]);
  return Object.fromEntries(names.map((name, place) => [name, rows.map((row) => cell(row, place))]));
}

async function startReport() {
  document.getElementById("main").setAttribute("aria-busy", "true");
  const [{ payload, items }, figures] = await Promise.all([unpack("payload"), unpack("figures")]);
  payload.items.forEach((each, place) => (each.columns = columnsOf(items[place])));
  await startPage({ payload, figures, items: itemsInMemory(payload) });
}

startReport().catch((problem) => {
  document.getElementById("loading")?.replaceChildren(
    `This report cannot be opened here: ${problem.message}. Use a current browser, or make it again.`,
  );
  throw problem;
});
