// `npm run bench [-- --quick] [-- part …]`: measures Antiphon and its peers, prints the figures and
// writes RESULTS.md. Parts: route provider sandbox remote-tools append projections turn
// first-frame events tasks agents identity files cli growth start.
// It runs on any Node of npm, and starts the project's own Node.
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { runPrepared } from './lib/prepare.mjs';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const PARTS = [
  'route',
  'provider',
  'sandbox',
  'remote-tools',
  'append',
  'projections',
  'turn',
  'first-frame',
  'events',
  'tasks',
  'agents',
  'identity',
  'files',
  'cli',
  'growth',
  'start',
];

const parseArguments = (args) => {
  const wanted = args.filter((arg) => arg !== '--quick');
  const unknown = wanted.find((part) => !PARTS.includes(part));
  if (unknown !== undefined) {
    console.error(`unknown part "${unknown}"; usage: npm run bench -- [--quick] [${PARTS.join('] [')}]`);
    process.exit(2);
  }
  return {
    quick: args.includes('--quick'),
    parts: wanted.length > 0 ? PARTS.filter((part) => wanted.includes(part)) : PARTS,
  };
};

const options = parseArguments(process.argv.slice(2));
await runPrepared(here('./run.mjs'));

const { measure } = await import('./lib/measure.mjs');
const { markdown, failed } = await measure(options);
console.log(markdown);
// A part of the whole, or a quick look, does not replace what the whole has shown.
if (!options.quick && options.parts.length === PARTS.length) writeFileSync(here('./RESULTS.md'), markdown);
if (failed.length > 0)
  console.error(
    `${failed.length} figure(s) miss what they must be: ${failed.map(({ what }) => what).join('; ')}`,
  );
process.exit(failed.length > 0 ? 1 : 0);
