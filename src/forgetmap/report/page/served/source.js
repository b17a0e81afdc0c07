// Items that stay where they are: every page of them is asked for.

const MOST_ROWS = 500;

/** What the server says; what it refuses is an error in its own words. */
async function ask(path, parameters) {
  const given = Object.entries(parameters).filter(([, value]) => value !== "");
  const answer = await fetch(`${path}?${new URLSearchParams(given)}`, { credentials: "same-origin" });
  const said = await answer.json().catch(() => ({ error: `the server answered ${answer.status}` }));
  if (!answer.ok) throw new Error([said.error, said.hint].filter(Boolean).join(": "));
  return said;
}

/**
 * @param {{before: string, after: string}} pair ids of two runs
 * @returns {ItemSource}
 */
function itemsFromServer(pair) {
  const chosen = ({ filters, sort }) => ({ ...pair, ...filters, sort });
  return {
    async query({ offset, limit, ...selection }) {
      const rows = [];
      let total = 0;
      do {
        const size = Math.min(limit - rows.length, MOST_ROWS);
        const place = { offset: offset + rows.length, limit: size };
        const found = await ask("api/items", { ...chosen(selection), ...place });
        total = found.total;
        rows.push(...found.rows);
        if (found.rows.length < size) break;
      } while (rows.length < limit);
      return { total, rows };
    },
    find: ({ key, ...selection }) => ask("api/item", { ...chosen(selection), key }),
    facets: () => ask("api/facets", pair),
  };
}
