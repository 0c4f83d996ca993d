import { readdirSync, readFileSync } from 'node:fs';
import os from 'node:os';

const SAMPLE_MS = 2_000;
/** Linux counts processor time in ticks of 10 ms. */
const TICK_MS = 10;

const sum = (values) => values.reduce((total, value) => total + value, 0);

/** Milliseconds of all processors since the start of the machine, in use and in all. */
const machineTimes = () => {
  const times = os.cpus().map((cpu) => cpu.times);
  const all = sum(times.flatMap((one) => Object.values(one)));
  return { all, used: all - sum(times.map(({ idle }) => idle)) };
};

/**
 * Parent and processor time of every process, that of its children which have ended and were waited
 * for included.
 */
const processTimes = () => {
  const table = new Map();
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      const ms = sum(fields.slice(11, 15).map(Number)) * TICK_MS;
      table.set(Number(pid), { parent: Number(fields[1]), ms });
    } catch {
      // It has just ended.
    }
  }
  return table;
};

/** These processes and all that descend from them. */
const familyOf = (table, roots) => {
  const family = new Set(roots);
  for (let size = 0; size !== family.size;) {
    size = family.size;
    for (const [pid, { parent }] of table) if (family.has(parent)) family.add(pid);
  }
  return family;
};

/**
 * Watches what of the processors others use while we measure; `roots` answers our own processes,
 * whose descendants are ours as well. `take` answers the share since the last time (0 to 1),
 * undefined where the system does not tell.
 */
export const watchOthers = (roots) => {
  if (os.platform() !== 'linux') return { take: () => undefined, close: () => {} };
  const look = () => {
    const table = processTimes();
    const own = new Map();
    for (const pid of familyOf(table, roots())) if (table.has(pid)) own.set(pid, table.get(pid).ms);
    return { machine: machineTimes(), own };
  };
  let last = look();
  let seen = { all: 0, others: 0 };
  const sample = () => {
    const now = look();
    const all = now.machine.all - last.machine.all;
    const used = now.machine.used - last.machine.used;
    const own = sum([...now.own].map(([pid, ms]) => ms - (last.own.get(pid) ?? 0)));
    seen = { all: seen.all + all, others: seen.others + Math.max(0, used - own) };
    last = now;
  };
  const timer = setInterval(sample, SAMPLE_MS);
  timer.unref();
  return {
    take: () => {
      sample();
      const share = seen.all === 0 ? 0 : seen.others / seen.all;
      seen = { all: 0, others: 0 };
      return share;
    },
    close: () => clearInterval(timer),
  };
};
