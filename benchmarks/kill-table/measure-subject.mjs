import { setTimeout as wait } from 'node:timers/promises';
import { median } from '../lib/stats.mjs';
import { planKills } from './plan.mjs';

/** Turns before the first kill: those that are not measured, and those whose median is. */
const WARM_UP = 10;
const TIMED = 15;
/** Time after a kill without an end, after which a turn counts as never resumed. */
const RESUME_MS = 60_000;
/** Time after the last turn in which a late effect is still counted. */
const LATE_MS = 5_000;

const contentOf = (id) => `charge the account once, TURN=${id}`;

/** Measures the turn of this subject without a kill. Throws unless each acts once. */
const timeTurns = async (subject, stubs, name) => {
  const times = [];
  for (let i = 0; i < WARM_UP + TIMED; i += 1) {
    const id = `${name}-warm-${i}`;
    const from = performance.now();
    await subject.turn(id, contentOf(id), AbortSignal.timeout(RESUME_MS));
    if (i >= WARM_UP) times.push(performance.now() - from);
    const { effects, modelCalls } = stubs.turn(id);
    if (effects !== 1 || modelCalls !== 2)
      throw new Error(`${name} without a kill: ${effects} effects, ${modelCalls} model calls`);
  }
  return median(times);
};

/** A peer returns the text of the answer, and Antiphon the status of the turn. */
const isAnswered = ({ status, text }) => status === 'completed' || text?.includes('word0') === true;

/** Kills at a point: a delay after the request, or after a boundary that the stubs see first. */
const armKill = (stubs, id, point, kill) => {
  const timers = [];
  const after = (ms) => (ms === 0 ? kill() : timers.push(setTimeout(kill, ms)));
  if (point.delayMs !== undefined) after(point.delayMs);
  let isReached = false;
  const unwatch = stubs.watch(id, (mark) => {
    if (isReached || mark !== point.mark) return;
    isReached = true;
    after(point.afterMs);
  });
  return () => {
    unwatch();
    timers.forEach(clearTimeout);
  };
};

/** Runs a turn that is killed at a point. Times are milliseconds since the kill. */
const runKilled = async (subject, stubs, id, point) => {
  const killed = Promise.withResolvers();
  const giveUp = new AbortController();
  let timer;
  let isKilled = false;
  const kill = () => {
    if (isKilled) return;
    isKilled = true;
    subject.kill();
    killed.resolve(performance.now());
    timer = setTimeout(() => giveUp.abort(new Error('never resumed')), RESUME_MS);
  };
  const disarm = armKill(stubs, id, point, kill);
  // A turn that does not reach its point is killed where it is.
  const latest = setTimeout(kill, RESUME_MS);
  const ended = subject.turn(id, contentOf(id), giveUp.signal).then(
    (end) => ({ at: performance.now(), ...end }),
    () => ({ at: undefined }),
  );
  const [killedAt, end] = await Promise.all([killed.promise, ended]);
  clearTimeout(timer);
  clearTimeout(latest);
  disarm();
  await subject.settle();
  return {
    ...{ id, group: point.group, isInterrupted: end.at === undefined || end.at > killedAt },
    isEnded: end.at !== undefined,
    isFailed: end.at !== undefined && !isAnswered(end),
    resumeMs: end.at === undefined ? undefined : end.at - killedAt,
  };
};

/** Kills the subject at each point of the plan, and returns what the outside saw of each turn. */
export const measureSubject = async ({ name, subject, stubs, seed, isQuick, log }) => {
  stubs.aimAt(subject.targetUrl);
  const turnMs = await timeTurns(subject, stubs, name);
  const plan = planKills({ turnMs, seed, isQuick });
  log(`${name}: a turn takes ${Math.round(turnMs)} ms, ${plan.length} kills …`);
  const turns = [];
  for (const [index, point] of plan.entries()) {
    turns.push(await runKilled(subject, stubs, `${name}-${index}`, point));
    if ((index + 1) % 50 === 0) log(`${name}: ${index + 1} of ${plan.length}`);
  }
  await wait(LATE_MS);
  return {
    turnMs,
    turns: turns.map((turn) => ({ ...turn, ...stubs.turn(turn.id) })),
    audit: await subject.audit?.(),
  };
};
