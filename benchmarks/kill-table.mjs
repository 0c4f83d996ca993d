// Kills the process that executes a turn at 209 points of it, for Antiphon and its peers. It counts
// effects and answers from outside (docs/kill-table.md). `--quick` takes one point of eleven, and
// `--only NAME` one row. `--write` stores the rows in place of their last ones, and writes the
// page. `--render` writes the page from the stored rows alone.
import { appendFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { runPrepared } from './lib/prepare.mjs';

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string', multiple: true, default: [] },
    seed: { type: 'string', default: '209' },
    write: { type: 'boolean', default: false },
    render: { type: 'boolean', default: false },
  },
});
if (values.write && values.quick) {
  console.error('--write needs all points: leave out --quick');
  process.exit(2);
}
await runPrepared(fileURLToPath(import.meta.url));

const { readResults, renderResults, storeResults, writePage } = await import('./kill-table/page.mjs');
if (values.render) {
  await writePage(readResults());
  process.exit(0);
}
const { measureKills } = await import('./kill-table/measure.mjs');
const { verdictsOf } = await import('./kill-table/summarize.mjs');

const results = await measureKills({
  seed: Number(values.seed),
  isQuick: values.quick,
  only: values.only,
  log: (line) => console.log(line),
});
console.log(`\n${renderResults(results)}\n`);
if (values.write) await writePage(await storeResults(results));
const verdicts = results.rows.flatMap(verdictsOf);
for (const verdict of verdicts) {
  const { what, figure, ok } = verdict;
  console.log(`${ok ? 'ok  ' : 'FAIL'} ${what}: ${figure}`);
  // Rows of the table of `npm run test:nightly`.
  if (process.env.ANTIPHON_FIGURES_FILE !== undefined)
    appendFileSync(process.env.ANTIPHON_FIGURES_FILE, `${JSON.stringify(verdict)}\n`);
}
process.exit(verdicts.every(({ ok }) => ok) ? 0 : 1);
