// Has DuckDB or polars answer the questions of docs/cookbook.md, and prints the answers: a line for each, the rows as JSON.
//
//   node cookbook.mjs duckdb|polars TENSORS OTHER cookbook.md
import { readFileSync } from "node:fs";
import { DuckDBInstance } from "@duckdb/node-api";

const [engine, tensors, other, page] = process.argv.slice(2);
if (!page) {
  console.error("usage: node cookbook.mjs duckdb|polars TENSORS OTHER cookbook.md");
  process.exit(2);
}
const quote = (text) => `'${text.replaceAll("'", "''")}'`;
const blocks = [...readFileSync(page, "utf8").matchAll(/```sql\n-- (.*)\n([^]*?)```/g)].map(([, title, sql]) => ({
  title,
  sql: sql.replaceAll("'tensors.parquet'", quote(tensors)).replaceAll("'other.parquet'", quote(other)),
}));
const duckdb = await (await DuckDBInstance.create(":memory:")).connect();
const rowsOf = async (sql) => (await duckdb.runAndReadAll(sql)).getRows();

// polarsRows returns a function that has polars answer. Its module for node does not read a file's metadata: DuckDB does.
async function polarsRows() {
  const { default: pl } = await import("nodejs-polars");
  await duckdb.run(blocks.find(({ title }) => title === "DuckDB").sql);
  const [[rows]] = await rowsOf("SELECT rows FROM trace");
  const trace = pl.DataFrame({ rows: [Number(rows)] }).withColumns(pl.col("rows").cast(pl.Int64));
  const context = pl.SQLContext({ trace: trace.lazy() });
  return (sql) => {
    const answer = context.execute(sql);
    if (answer._ldf instanceof Error) throw answer._ldf;
    return answer.collectSync().rows();
  };
}

const ask = engine === "polars" ? await polarsRows() : rowsOf;
for (const { title, sql } of blocks) {
  if (title === "DuckDB" && engine === "polars") continue;
  for (const statement of sql.split(/;.*\n/).filter((text) => text.trim())) {
    const rows = await ask(statement);
    if (/^\d/.test(title)) console.log(JSON.stringify(rows.map((row) => [...row].map(String))));
  }
}
