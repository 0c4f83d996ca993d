import { parseArgs } from 'node:util';
import { SIGNAL_EXIT, watchParent } from '../bootstrap/processes.mjs';
import { listParts } from './parts.mjs';
import { runPart } from './run-part.mjs';
import { renderSum, renderTable } from './table.mjs';

const USAGE = `usage: npm run test:nightly -- [--quick] [--cold] [--only PART]... [--list]

Runs every test that is too long for \`npm test\`, one part after another, and prints one table at its end: part, what it
shows, figure, bound, result, time. A part that needs something that this machine lacks is skipped, with the reason.
Exits 1 when a part fails; the parts after it still run. Takes more than four hours on two cores.

  --quick       small samples: all parts in about 90 minutes on two cores
  --cold        with --quick: also a clone with empty npm and engine caches (always part of a full run)
  --only PART   this part alone; may be given several times. PART may be the beginning of a name
  --list        print the parts with their time limits, and exit
  --help        print this text, and exit

examples:
  npm run test:nightly
  npm run test:nightly -- --quick
  npm run test:nightly -- --only chaos --only network
  npm run test:nightly -- --quick --only failpoint-sweep`;

const fail = (message) => {
  console.error(`${message}\n\n${USAGE}`);
  process.exit(2);
};

const readFlags = () => {
  try {
    return parseArgs({
      options: {
        quick: { type: 'boolean', default: false },
        cold: { type: 'boolean', default: false },
        only: { type: 'string', multiple: true, default: [] },
        list: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
      },
    }).values;
  } catch (error) {
    return fail(error.message);
  }
};

const selectParts = (parts, only) => {
  for (const wanted of only)
    if (!parts.some(({ name }) => name.startsWith(wanted)))
      fail(`there is no part "${wanted}"; the parts are: ${parts.map(({ name }) => name).join(', ')}`);
  return only.length === 0 ? parts : parts.filter(({ name }) => only.some((one) => name.startsWith(one)));
};

const runAll = async (parts) => {
  const interrupt = new AbortController();
  for (const name of Object.keys(SIGNAL_EXIT)) process.on(name, () => interrupt.abort());
  // npm forwards SIGINT and SIGTERM only: SIGHUP ends npm alone.
  watchParent(() => interrupt.abort());
  // The terminal may be gone, and the processes of the part are still to be ended.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});
  const results = [];
  for (const part of parts) {
    if (interrupt.signal.aborted) break;
    console.log(`\n== ${part.name}: ${part.shows} (${results.length + 1} of ${parts.length})`);
    const outcome = await runPart(part, interrupt.signal);
    if (outcome.result !== 'ok') console.log(`${outcome.result}: ${outcome.note}`);
    results.push({ part, outcome });
  }
  console.log(`\n${renderTable(results)}\n\n${renderSum(results)}`);
  if (interrupt.signal.aborted) return 130;
  return results.some(({ outcome }) => outcome.result === 'failed') ? 1 : 0;
};

const flags = readFlags();
if (flags.help) {
  console.log(USAGE);
} else {
  const all = listParts(flags);
  const wantsCold = flags.only.some((name) => 'cold-clone'.startsWith(name));
  const parts = selectParts(wantsCold ? listParts({ ...flags, cold: true }) : all, flags.only);
  if (flags.list)
    for (const { name, minutes, shows } of parts) console.log(`${name}  ${shows} (at most ${minutes} min)`);
  else process.exitCode = await runAll(parts);
}
