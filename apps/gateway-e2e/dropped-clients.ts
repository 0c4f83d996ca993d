import { setTimeout as pause } from 'node:timers/promises';
import { assembleFrames, followSession } from '@antiphon/testing/client';
import type { FollowedSession, SocketClient } from '@antiphon/testing/client';
import { openDoor, sendTurn } from '@antiphon/testing/load';
import type { Chance, Door } from '@antiphon/testing/load';
import type { MockScript } from '@antiphon/testing/providers';
import type { TestStack } from '@antiphon/testing/stack';

export interface DropsOptions {
  readonly stack: TestStack;
  readonly chance: Chance;
  /** Sessions that are spoken in side by side. */
  readonly sessions: number;
  /** Cuts of clients' connections that had brought frames, over all sessions. */
  readonly drops: number;
  /** kill -9 of an agent process each time that so many clients were cut. */
  readonly killEvery: number;
}

/** What two clients of one session have in the end, one of which was cut off again and again. */
export interface SessionSeen {
  readonly sessionId: string;
  readonly lastOffset: number;
  readonly frames: number;
  readonly restarts: number;
  readonly drops: number;
  readonly uninterrupted: string;
  readonly dropped: string;
}

const WORDS = ['so ', 'far ', '— ', 'it ', 'goes ', 'on ', '\n', '…', '🙂 ', 'und ', 'weiter '];

/**
 * A model that takes its time: long texts, sums by a tool, and answers (`flaky`) whose connection breaks at the first
 * try after some text. Waits are drawn from `chance`, so that cuts fall anywhere.
 */
export const wordyModel = (chance: Chance): MockScript => {
  const broken = new Set<string>();
  const before = async (): Promise<void> => void (await pause(chance.below(20)));
  return ({ user, toolResults }) => {
    const text = Array.from({ length: chance.between(8, 40) }, () => chance.pick(WORDS));
    if (toolResults.length > 0) return { reply: { text: [`It is ${toolResults[0]}. `, ...text] }, before };
    if (user.includes('sum'))
      return { tools: [{ id: 'c', name: 'calculator', input: { expression: '6*7' } }] };
    if (!user.includes('flaky') || broken.has(user)) return { reply: { text }, before };
    broken.add(user);
    const breaks = chance.between(3, 8);
    return {
      reply: { text },
      before: async (_piece, index) => {
        await before();
        if (index === breaks) throw new Error('the provider breaks off');
      },
    };
  };
};

const wsOf = (url: string): string => `${url.replace(/^http/, 'ws')}/ws`;

const killAgent = ({ stackJson }: TestStack, chance: Chance): void => {
  const pids = stackJson().services.agent.flatMap(({ pid }) => (pid === null ? [] : [pid]));
  if (pids.length === 0) return;
  try {
    process.kill(chance.pick(pids), 'SIGKILL');
  } catch (error) {
    // It has just died of the last one.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
};

const KINDS = ['tell me', 'tell me more', 'a sum', 'flaky', 'cancel'] as const;

/** Cancels what is open in a session after a while; an agent that dies meanwhile answers nothing. */
const cancelSoon = async (client: SocketClient, chance: Chance, sessionId: string): Promise<void> => {
  await pause(chance.below(80));
  await client.call('session.cancel', { sessionId }).catch(() => undefined);
};

/** Speaks in one session, turn after turn, until it is told to stop; what is not answered is sent again, with its key. */
const speak = async (
  door: Door,
  chance: Chance,
  peer: string,
  mayGoOn: () => boolean,
  onSession: (sessionId: string) => void,
): Promise<void> => {
  const client = await door.client();
  const begun = (await client.call('session.new', { channel: 'load', account: 'load', peer })) as {
    sessionId: string;
  };
  onSession(begun.sessionId);
  for (let n = 0; n === 0 || mayGoOn(); n++) {
    const kind = chance.pick(KINDS);
    const content = `${kind} ${peer} ${n}`;
    const sent = sendTurn(door, { key: content, peer, content });
    if (kind === 'cancel') await cancelSoon(client, chance, begun.sessionId);
    await sent;
  }
};

const cutBy = (chance: Chance) => () => ({ frames: chance.between(1, 12), ms: chance.below(400) });

/** Two clients of one session: one at the first gateway for good, one that is cut and goes on at any gateway. */
const readTwice = (stack: TestStack, chance: Chance, sessionId: string) => {
  const urls = () => stack.stackJson().urls.gateways.map(wsOf);
  return {
    sessionId,
    steady: followSession({ sessionId, door: () => wsOf(stack.gatewayUrl), cut: () => null }),
    dropping: followSession({ sessionId, door: () => chance.pick(urls()), cut: cutBy(chance) }),
  };
};
type Readers = ReturnType<typeof readTwice>;

const lastOf = ({ frames }: FollowedSession): number => frames.at(-1)?.offset ?? 0;

const settle = async ({ sessionId, steady, dropping }: Readers): Promise<SessionSeen> => {
  const end = await endOf(steady);
  await dropping.until(end);
  return {
    sessionId,
    lastOffset: end,
    frames: steady.frames.length,
    restarts: steady.frames.filter(({ event }) => event === 'restart').length,
    drops: dropping.dropsInStream(),
    uninterrupted: assembleFrames(steady.frames),
    dropped: assembleFrames(dropping.frames),
  };
};

/** The offset of the last `done`, once everything that was said has one. */
const endOf = async (steady: FollowedSession): Promise<number> => {
  const count = (kind: string): number => steady.frames.filter(({ event }) => event === kind).length;
  while (count('done') < count('accepted') && steady.problems.length === 0) await pause(20);
  await steady.until(0);
  return lastOf(steady);
};

const killNowAndThen = async (
  { stack, chance, killEvery }: DropsOptions,
  dropped: () => number,
  over: () => boolean,
): Promise<void> => {
  for (let kills = 1; !over();) {
    await pause(20);
    if (dropped() < kills * killEvery) continue;
    kills++;
    killAgent(stack, chance);
  }
};

/** Speaks in several sessions while their clients are cut and agents are killed; settles with what each client has. */
export const dropClients = async (options: DropsOptions): Promise<SessionSeen[]> => {
  const { stack, chance, sessions, drops } = options;
  const door = openDoor(() => stack.wsUrl);
  const readers: Readers[] = [];
  let failed = false;
  const dropped = (): number => readers.reduce((sum, { dropping }) => sum + dropping.dropsInStream(), 0);
  const mayGoOn = (): boolean => !failed && dropped() < drops;
  const begin = (sessionId: string): void => void readers.push(readTwice(stack, chance, sessionId));
  try {
    const peers = Array.from({ length: sessions }, (_, n) => `p${n}`);
    const spoken = Promise.all(peers.map((peer) => speak(door, chance, peer, mayGoOn, begin)));
    spoken.catch(() => (failed = true));
    await killNowAndThen(options, dropped, () => !mayGoOn());
    await spoken;
    return await Promise.all(readers.map(settle));
  } finally {
    await Promise.all(readers.flatMap(({ steady, dropping }) => [steady.stop(), dropping.stop()]));
    await door.drop();
  }
};

/** Reads finished sessions again from their beginning, cut off as often, and answers what that client has. */
export const readAgain = async (
  { stack, chance }: Pick<DropsOptions, 'stack' | 'chance'>,
  seen: readonly SessionSeen[],
): Promise<{ readonly sessionId: string; readonly drops: number; readonly assembled: string }[]> =>
  Promise.all(
    seen.map(async ({ sessionId, lastOffset }) => {
      const { dropping, steady } = readTwice(stack, chance, sessionId);
      await dropping.until(lastOffset);
      await Promise.all([dropping.stop(), steady.stop()]);
      return { sessionId, drops: dropping.dropsInStream(), assembled: assembleFrames(dropping.frames) };
    }),
  );
