import { costOf, familyOf } from './process-cost.mjs';
import { median } from './stats.mjs';

/** Services that measure stages of turns, and the line of a stage in their metrics. */
const STAGE_SERVICES = ['gateway', 'agent'];
const STAGE = /^antiphon_turn_stage_seconds_(sum|count)\{stage="([a-z_]+)"\} (\S+)$/gm;

const processesOf = ({ services, engines }) =>
  Object.entries({ ...services, ...engines }).flatMap(([name, entry]) =>
    [entry]
      .flat()
      // A hosted service is part of the process of another one.
      .filter(({ pid, process: host }) => pid && host === undefined)
      .map(({ pid }) => [name, pid]),
  );

const readProcessors = (stack) => {
  const costs = new Map();
  for (const [name, pid] of processesOf(stack.read())) {
    const { cpuMs, switches } = costOf(familyOf(pid));
    const before = costs.get(name) ?? { cpuMs: 0, switches: 0 };
    costs.set(name, { cpuMs: before.cpuMs + cpuMs, switches: before.switches + switches });
  }
  return costs;
};

const readStages = async (stack) => {
  const stages = new Map();
  for (const service of STAGE_SERVICES)
    for (const { port } of stack.read().services[service]) {
      const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
      for (const [, part, stage, value] of text.matchAll(STAGE)) {
        const row = stages.get(stage) ?? { service, sum: 0, count: 0 };
        row[part] += Number(value);
        stages.set(stage, row);
      }
    }
  return stages;
};

/** Reads the stages of turns and the processor time of each process of a stack, as totals. */
export const readTurnCosts = async (stack) => ({
  stages: await readStages(stack),
  processors: readProcessors(stack),
});

/** Returns the mean of each stage, ms, and the processor time of each process, between two reads. */
export const turnCostsBetween = (before, after, turns) => ({
  stages: [...after.stages].map(([stage, { service, sum, count }]) => {
    const { sum: sumBefore = 0, count: countBefore = 0 } = before.stages.get(stage) ?? {};
    const times = count - countBefore;
    return { service, stage, perTurn: times / turns, ms: ((sum - sumBefore) / times) * 1_000 };
  }),
  processors: [...after.processors].map(([name, { cpuMs, switches }]) => ({
    name,
    cpuMs: (cpuMs - before.processors.get(name).cpuMs) / turns,
    switches: (switches - before.processors.get(name).switches) / turns,
  })),
});

/** Returns the medians of several rounds. */
export const summarizeTurnCosts = (rounds) => ({
  stages: rounds[0].stages.map(({ service, stage }) => {
    const same = rounds.map(({ stages }) => stages.find((row) => row.stage === stage));
    const of = (key) => median(same.map((row) => row[key]));
    return { service, stage, perTurn: of('perTurn'), ms: of('ms') };
  }),
  processors: rounds[0].processors
    .map(({ name }) => {
      const same = rounds.map(({ processors }) => processors.find((row) => row.name === name));
      const of = (key) => median(same.map((row) => row[key]));
      return { name, cpuMs: of('cpuMs'), switches: of('switches') };
    })
    .toSorted((a, b) => b.cpuMs - a.cpuMs),
});
