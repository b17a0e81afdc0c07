// Items that stay where they are: every page of them is requested.

const MOST_ROWS = 500;

/** What the server says; what it refuses is an error in its own words. */
async function ask(path, parameters, signal = null) {
  const query = Object.entries(parameters).filter(([, value]) => value !== "");
  const response = await fetch(`${path}?${new URLSearchParams(query)}`, { credentials: "same-origin", signal });
  const reply = await response.json().catch(() => ({ error: `the server answered ${response.status}` }));
  if (!response.ok) throw new Error([reply.error, reply.hint].filter(Boolean).join(": "));
  return reply;
}

/**
 * @param {{before: string, after: string}} pair ids of two runs
 * @returns {ItemSource}
 */
function itemsFromServer(pair) {
  const parametersOf = ({ filters, sort }) => ({ ...pair, ...filters, sort });
  return {
    async query({ offset, limit, ...selection }) {
      const rows = [];
      let total = 0;
      do {
        const size = Math.min(limit - rows.length, MOST_ROWS);
        const range = { offset: offset + rows.length, limit: size };
        const reply = await ask("api/items", { ...parametersOf(selection), ...range });
        total = reply.total;
        rows.push(...reply.rows);
        if (reply.rows.length < size) break;
      } while (rows.length < limit);
      return { total, rows };
    },
    find: ({ key, ...selection }) => ask("api/item", { ...parametersOf(selection), key }),
    facets: () => ask("api/facets", pair),
  };
}
