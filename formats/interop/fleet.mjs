// Has DuckDB answer the queries of docs/fleet.md on a dataset that gmtrace summary wrote, and prints the answers, or with --times the number of
// the queries and the milliseconds of the slowest.
//
//   node fleet.mjs FOLDER fleet.md [--times]
import { readFileSync } from "node:fs";
import { DuckDBInstance } from "@duckdb/node-api";

const [folder, page, times] = process.argv.slice(2);
if (!page) {
  console.error("usage: node fleet.mjs FOLDER fleet.md [--times]");
  process.exit(2);
}
const duckdb = await (await DuckDBInstance.create(":memory:")).connect();
const queries = [...readFileSync(page, "utf8").matchAll(/```sql\n-- (.*)\n([^]*?)```/g)];
let slowest = 0;
for (const [, title, sql] of queries) {
  const start = performance.now();
  const reader = await duckdb.runAndReadAll(sql.replaceAll("'fleet/", `'${folder.replaceAll("'", "''")}/`));
  slowest = Math.max(slowest, performance.now() - start);
  if (times) continue;
  console.log(`# ${title}`);
  for (const row of reader.getRowObjects()) console.log(Object.entries(row).map(([key, value]) => `${key}=${value}`).join(" "));
}
if (times) console.log(queries.length - 1, Math.ceil(slowest)); // the first is the view
