import { readFileSync, readdirSync } from 'node:fs';

/** Linux counts processor time in ticks of 10 ms here, and in nanoseconds in `schedstat`. */
const NANOSECONDS_A_MS = 1_000_000;
const MS_A_TICK = 10;

const read = (path) => {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return ''; // the process has ended
  }
};

/** A process and all that descend from it. */
export const familyOf = (root) => {
  const children = new Map();
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const parent = Number(/\) \S (\d+)/.exec(read(`/proc/${name}/stat`))?.[1] ?? 0);
    children.set(parent, [...(children.get(parent) ?? []), Number(name)]);
  }
  const family = [root];
  for (const pid of family) family.push(...(children.get(pid) ?? []));
  return family;
};

const threadCost = (folder) => {
  const [ns = 0] = read(`${folder}/schedstat`).split(' ').map(Number);
  const switches = Number(/^voluntary_ctxt_switches:\s+(\d+)/m.exec(read(`${folder}/status`))?.[1] ?? 0);
  return { cpuMs: ns / NANOSECONDS_A_MS, switches };
};

/** Processor time of the ended children of a process. A database ends its idle connections. */
const endedCost = (pid) => {
  const fields = read(`/proc/${pid}/stat`).split(') ').at(-1)?.split(' ') ?? [];
  const [user = 0, system = 0] = fields.slice(13, 15).map(Number);
  return { cpuMs: (user + system) * MS_A_TICK, switches: 0 };
};

const threadsOf = (pid) => {
  try {
    return readdirSync(`/proc/${pid}/task`).map((thread) => `/proc/${pid}/task/${thread}`);
  } catch {
    return [];
  }
};

/**
 * Processor time and voluntary context switches of these processes since they began. Threads that
 * ended are left out; of children that ended, only the switches are.
 */
export const costOf = (pids) =>
  [...pids.flatMap(threadsOf).map(threadCost), ...pids.map(endedCost)].reduce(
    (sum, one) => ({ cpuMs: sum.cpuMs + one.cpuMs, switches: sum.switches + one.switches }),
    {
      cpuMs: 0,
      switches: 0,
    },
  );
