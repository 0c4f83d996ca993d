import { parseArgs } from 'node:util';
import { parseScale } from '@antiphon/stack';
import { CHAOS_CONFIG, CHAOS_ENDS, runChaos } from '@antiphon/testing/faults';
import { formatEnds } from '@antiphon/testing/load';
import { startStack } from '@antiphon/testing/stack';

// `npm run chaos -- --seed S --minutes M`: loads a stack of its own and breaks it by a schedule
// that follows from the seed.
const USAGE = `usage: npm run chaos -- [--seed S] [--minutes M] [--sessions N] [--scale gateway=2,agent=2] [--compact] [--calm]
       [--keep]

Starts a stack in a temporary home, sends it turns (with tools) and runs under idempotency keys, and breaks it at
random: services are killed (-9), terminated, or stopped for 5 to 20 s; NATS, PostgreSQL and Temporal restart;
JetStream's folder is deleted. Then compares each accepted command with the log, and runs \`antiphon audit\`.
Prints the share of turns that completed. Exits 1 when fewer than ${100 * CHAOS_ENDS.completed.atLeast} % completed, when a turn ended in any other
way than ${CHAOS_ENDS.failed.join(', ')}, or when a command is lost or repeated, with the first
counter-examples. The same seed makes the same schedule.

  --seed S       the schedule, a whole number (default: by the clock; it is printed)
  --minutes M    time for which faults are injected (default 1)
  --sessions N   sessions side by side (default 20)
  --scale LIST   processes of each service (default: two gateways, two agents)
  --compact      memory and metering in the processes of the agents (default: in processes of their own)
  --calm         no faults: measures the load alone
  --keep         keep the stack's home with its logs

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
        compact: { type: 'boolean', default: false },
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
  console.error(`--seed must be a whole number; --minutes and --sessions must be above 0\n${USAGE}`);
  process.exit(2);
}

console.log(`chaos with seed ${seed}: ${minutes} min, ${sessions} sessions`);
const stack = await startStack({
  config: CHAOS_CONFIG,
  scale: parseScale(values.scale),
  isHosting: values.compact,
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

const { turns, runs, faults, sent, lost, repeated, misread, disallowed, audit, problems } = report;
console.log(`${turns + runs} accepted (${turns} turns, ${runs} runs; ${sent} turns sent), ${faults} faults`);
console.log(
  `${lost} lost, ${repeated} repeated, ${misread} misread, ${disallowed} with an end that is not allowed`,
);
console.log(formatEnds(report, CHAOS_ENDS));
console.log(audit.ok ? 'audit: everything holds' : `audit:\n${audit.output}`);
if (problems.length > 0) {
  console.error(`failed with seed ${seed}:`);
  for (const problem of problems) console.error(`  ${problem}`);
  process.exit(1);
}
