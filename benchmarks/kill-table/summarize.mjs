import { summarize } from '../lib/stats.mjs';

const count = (turns, holds) => turns.filter(holds).length;
const hasResult = ({ id, told }) => told.every((text) => text.includes(`done ${id}`));

/** Returns the different texts that told the model of an unknown result, with their counts. */
const textsOf = (turns) => {
  const texts = new Map();
  for (const { id, told } of turns)
    for (const text of told.filter((one) => !one.includes(`done ${id}`)))
      texts.set(text, (texts.get(text) ?? 0) + 1);
  return [...texts].map(([text, times]) => ({ text, times })).toSorted((a, b) => b.times - a.times);
};

const groupsOf = (turns) =>
  Object.fromEntries(
    [...new Set(turns.map(({ group }) => group))].map((group) => {
      const own = turns.filter((turn) => turn.group === group);
      const repeated = count(own, ({ effects }) => effects > 1);
      return [group, { kills: own.length, repeated, unknown: count(own, (turn) => !hasResult(turn)) }];
    }),
  );

const round = (value) => (Number.isFinite(value) ? Math.round(value) : null);

/** Counts what happened to the turns of a subject. */
export const summarizeSubject = ({ turnMs, turns, audit }) => {
  const resumed = turns.filter(({ isInterrupted, isEnded }) => isInterrupted && isEnded);
  const { p50, p99 } = summarize(resumed.map(({ resumeMs }) => resumeMs));
  return {
    turnMs: round(turnMs),
    kills: turns.length,
    interrupted: count(turns, ({ isInterrupted }) => isInterrupted),
    once: count(turns, ({ effects }) => effects === 1),
    repeated: count(turns, ({ effects }) => effects > 1),
    none: count(turns, ({ effects }) => effects === 0),
    /** Turns that ended without the effect, and without a word about it. */
    lost: count(turns, (turn) => turn.effects === 0 && turn.isEnded && hasResult(turn)),
    unknown: count(turns, (turn) => !hasResult(turn)),
    neverResumed: count(turns, ({ isEnded }) => !isEnded),
    failed: count(turns, ({ isFailed }) => isFailed),
    modelCallsRepeated: turns.reduce((sum, { modelCalls }) => sum + Math.max(0, modelCalls - 2), 0),
    resumeP50Ms: round(p50),
    resumeP99Ms: round(p99),
    groups: groupsOf(turns),
    told: textsOf(turns),
    ...(audit && { audit }),
  };
};

/** Returns what a row of ours must show, with what it shows. The rows of peers have no bound. */
export const verdictsOf = ({ name, audit, ...row }) =>
  audit === undefined
    ? []
    : [
        ...['repeated', 'lost', 'neverResumed', 'failed'].map((what) => ({
          what: `${name}: ${what}`,
          figure: String(row[what]),
          bound: 'at most 0',
          ok: row[what] === 0,
        })),
        // 5: everything holds, but the newest root is not signed yet.
        { what: `${name}: audit`, figure: audit.last, bound: 'holds', ok: [0, 5].includes(audit.code) },
      ];
