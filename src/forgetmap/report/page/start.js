// A report in one file: everything is in this document, packed.

/** Items stand one after the other, each text once; they are used by column. */
function columnsOf({ names, rows }) {
  const cell = (row, index) => (typeof row[index]?.[0] === "number" ? row[row[index][0]] : row[index]);
  return Object.fromEntries(names.map((name, index) => [name, rows.map((row) => cell(row, index))]));
}

async function startReport() {
  document.getElementById("main").setAttribute("aria-busy", "true");
  const [{ payload, items }, figures] = await Promise.all([unpack("payload"), unpack("figures")]);
  payload.items.forEach((table, index) => (table.columns = columnsOf(items[index])));
  await startPage({ payload, figures, items: itemsInMemory(payload) });
}

startReport().catch((problem) => {
  document.getElementById("loading")?.replaceChildren(
    `This report cannot be opened here: ${problem.message}. Use a current browser, or create the report again.`,
  );
  throw problem;
});
