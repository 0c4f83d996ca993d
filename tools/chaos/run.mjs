import { parseArgs } from 'node:util';
import { parseScale } from '@antiphon/stack';
import { CHAOS_CONFIG, runChaos } from '@antiphon/testing/faults';
import { startStack } from '@antiphon/testing/stack';

/*
 * `npm run chaos -- --seed S --minutes M`: a stack of its own under load, broken by a schedule that follows from the seed.
 */
const USAGE = `usage: npm run chaos -- [--seed S] [--minutes M] [--sessions N] [--scale gateway=2,agent=2] [--calm] [--keep]

Starts a stack in a temporary home, sends it turns (with tools) and runs under idempotency keys, and breaks it at
random: kill -9, SIGTERM and 5 to 20 s of standstill of services, restarts of NATS, PostgreSQL and Temporal, and
JetStream's folder deleted. Then holds each accepted command against the log, and the log against \`antiphon audit\`.
Exits 1 with the first counter-example. The same seed makes the same schedule.

  --seed S       which schedule, a whole number (default: by the clock; it is printed)
  --minutes M    how long things break (default 1)
  --sessions N   sessions that talk at once (default 20)
  --scale LIST   processes of each service (default: two gateways, two agents)
  --calm         no faults: what the machine carries
  --keep         leave the stack's home where it is, with its logs

examples:
  npm run chaos                                    # one minute, a new seed
  npm run chaos -- --seed 7 --minutes 10           # the soak of a release
  npm run chaos -- --seed 7 --minutes 1 --sessions 50 --keep`;

const read = () => {
  try {
    return parseArgs({
      options: {
        seed: { type: 'string', default: String(Date.now() % 1_000_000) },
        minutes: { type: 'string', default: '1' },
        sessions: { type: 'string', default: '20' },
        scale: { type: 'string', default: 'gateway=2,agent=2' },
        calm: { type: 'boolean', default: false },
        keep: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
      },
    }).values;
  } catch (error) {
    console.error(`${error.message}\n${USAGE}`);
    process.exit(2);
  }
};

const values = read();
if (values.help) {
  console.log(USAGE);
  process.exit(0);
}
const [seed, minutes, sessions] = [values.seed, values.minutes, values.sessions].map(Number);
if (!Number.isInteger(seed) || !(minutes > 0) || !(sessions >= 1)) {
  console.error(`--seed is a whole number, --minutes and --sessions are above 0\n${USAGE}`);
  process.exit(2);
}

console.log(`chaos with seed ${seed}: ${minutes} min, ${sessions} sessions`);
const stack = await startStack({
  config: CHAOS_CONFIG,
  scale: parseScale(values.scale),
  keepHome: values.keep,
});
console.log(`the stack runs in ${stack.home}`);
const options = {
  seed,
  minutes,
  sessions,
  faults: !values.calm,
  onProgress: (line) => console.log(`  ${line}`),
};
const report = await runChaos(stack, options).finally(() => stack.stop());

const { turns, runs, faults, sent, lost, repeated, misread, ends, audit, first } = report;
console.log(`${turns + runs} accepted (${turns} turns, ${runs} runs; ${sent} turns sent), ${faults} faults`);
console.log(`${lost} lost, ${repeated} repeated, ${misread} misread; turns ended ${JSON.stringify(ends)}`);
console.log(audit.ok ? 'audit: everything holds' : `audit:\n${audit.said}`);
if (first !== null) {
  console.error(`first counter-example (seed ${seed}): ${first}`);
  process.exit(1);
}
