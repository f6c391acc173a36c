// Has DuckDB answer the questions of docs/cookbook.md, and prints the answers: a line for each, the rows as JSON.
//
//   node cookbook.mjs TENSORS OTHER cookbook.md
import { readFileSync } from "node:fs";
import { DuckDBInstance } from "@duckdb/node-api";

const [tensors, other, page] = process.argv.slice(2);
if (!page) {
  console.error("usage: node cookbook.mjs TENSORS OTHER cookbook.md");
  process.exit(2);
}
const duckdb = await (await DuckDBInstance.create(":memory:")).connect();
const quote = (text) => `'${text.replaceAll("'", "''")}'`;
for (const [, title, sql] of readFileSync(page, "utf8").matchAll(/```sql\n-- (.*)\n([^]*?)```/g)) {
  const text = sql.replaceAll("'tensors.parquet'", quote(tensors)).replaceAll("'other.parquet'", quote(other));
  if (title === "before all") {
    await duckdb.run(text);
    continue;
  }
  const rows = (await duckdb.runAndReadAll(text)).getRows().map((row) => row.map(String));
  console.log(JSON.stringify(rows));
}
