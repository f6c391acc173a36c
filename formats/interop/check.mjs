// Reads a file of each format with DuckDB, compares what it finds with what `go run ./formats/interop` printed, and runs
// the queries of formats/README.md on them.
//
//   node check.mjs TRACE PLAN GRAPH SCHEDULE EXPECTED.json README.md
//
// It also has DuckDB write TRACE.copy and so on, in which gm is to see what it saw in the originals.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { DuckDBInstance } from "@duckdb/node-api";

const [trace, plan, graph, schedule, expectedFile, readme] = process.argv.slice(2);
const files = { trace, plan, graph, schedule };
if (!readme) {
  console.error("usage: node check.mjs TRACE PLAN GRAPH SCHEDULE EXPECTED.json README.md");
  process.exit(2);
}
const expected = JSON.parse(readFileSync(expectedFile, "utf8"));
const duckdb = await (await DuckDBInstance.create(":memory:")).connect();

// query returns rows as objects whose values are strings.
async function query(sql) {
  const reader = await duckdb.runAndReadAll(sql);
  return reader.getRowObjects().map((row) =>
    Object.fromEntries(Object.entries(row).map(([key, value]) => [key, String(value)])));
}

const quote = (text) => `'${text.replaceAll("'", "''")}'`;

// compareColumns checks the rows of a file and every column in it.
async function compareColumns(file, want) {
  const columns = [
    "count(*) AS rows",
    ...Object.keys(want.xor).map((name) => `bit_xor("${name}") AS "${name}"`),
    ...Object.keys(want.distinct).map((name) => `count(DISTINCT "${name}") AS "${name}"`),
  ];
  const [got] = await query(`SELECT ${columns.join(", ")} FROM ${quote(file)}`);
  assert.deepEqual(got, { rows: want.rows, ...want.xor, ...want.distinct });
}

// The queries are the SQL blocks of the README; the comment at the start of each is its title.
const queries = [...readFileSync(readme, "utf8").matchAll(/```sql\n-- (.*)\n([^]*?)```/g)].map(([, title, sql]) => ({
  title,
  sql: Object.entries(files).reduce((text, [format, file]) => text.replaceAll(`'${format}.parquet'`, quote(file)), sql),
}));

for (const [format, file] of Object.entries(files)) await compareColumns(file, expected[format]);
assert.ok(queries.length >= 10, "the README has fewer than ten queries");
for (const { title, sql } of queries) {
  const rows = await query(sql);
  assert.ok(rows.length > 0, `${title}: no rows`);
  console.log(`${title}:`, rows[0]);
  compareRows(title, rows, expected[title.split(":")[0]]);
}

// compareRows compares what a query found with what gm found.
function compareRows(title, rows, want) {
  const parts = (names) => rows.map((row) => Object.fromEntries(names.map((name) => [name, row[name]])));
  if ("live" in rows[0] && want.devices) {
    assert.deepEqual(Object.fromEntries(rows.map(({ device, live }) => [device, live])), want.devices, title);
  } else if ("live" in rows[0]) {
    assert.equal(rows[0].live, want.peak, title);
  }
  if ("stack" in rows[0]) assert.deepEqual(parts(["device", "stack", "allocs", "bytes"])[0], want.top, title);
  if ("stream" in rows[0]) assert.deepEqual(parts(["device", "stream", "allocs", "bytes"]), want.lanes, title);
}

// copyFile has DuckDB write all rows and metadata of a file anew.
async function copyFile(file) {
  const pairs = await query(`SELECT decode(key) AS key, decode(value) AS value FROM parquet_kv_metadata(${quote(file)})`);
  const metadata = pairs.filter(({ key }) => key.startsWith("gm."))
    .map(({ key, value }) => `"${key}": ${quote(value)}`).join(", ");
  await duckdb.run(`COPY (SELECT * FROM ${quote(file)}) TO ${quote(file + ".copy")}
    (FORMAT parquet, COMPRESSION zstd, KV_METADATA {${metadata}})`);
}
for (const file of Object.values(files)) await copyFile(file);
const counts = Object.entries(expected).map(([format, { rows }]) => `${format} of ${rows} rows`);
console.log(`${counts.join(", ")}, ${queries.length} queries: as expected`);
