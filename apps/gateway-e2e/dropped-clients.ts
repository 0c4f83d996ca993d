import { sleep } from '@antiphon/kernel';
import { assembleFrames, followSession } from '@antiphon/testing/client';
import type { FollowedSession, SocketClient } from '@antiphon/testing/client';
import { createReconnectingClient, sendTurn } from '@antiphon/testing/load';
import type { ReconnectingClient, SeededRandom, SentTurn } from '@antiphon/testing/load';
import type { MockScript } from '@antiphon/testing/providers';
import type { TestStack } from '@antiphon/testing/stack';
import { letTimePass } from '@antiphon/testing/waits';

export interface DropsOptions {
  readonly stack: TestStack;
  readonly random: SeededRandom;
  /** Number of sessions side by side. */
  readonly sessions: number;
  /** Number of cut connections that had received frames, over all sessions. */
  readonly drops: number;
  /** An agent process is killed (`kill -9`) after every so many cuts. */
  readonly killEvery: number;
}

/**
 * The frames that two clients of one session have in the end, one of which was cut off again and
 * again.
 */
export interface SessionSeen {
  readonly sessionId: string;
  readonly lastOffset: number;
  readonly frames: number;
  readonly restarts: number;
  readonly drops: number;
  readonly uninterrupted: string;
  readonly dropped: string;
}

export interface DropsResult {
  readonly sessions: readonly SessionSeen[];
  readonly turns: readonly SentTurn[];
  /** Turns whose session was cancelled while they were open, or shortly after. */
  readonly cancelledTurns: readonly SentTurn[];
}

const WORDS = ['so ', 'far ', '— ', 'it ', 'goes ', 'on ', '\n', '…', '🙂 ', 'und ', 'weiter '];
const KINDS = ['tell me', 'tell me more', 'a sum', 'flaky', 'cancel'] as const;
const POLL_MS = 20;

/**
 * Creates a slow model: long texts, sums by a tool, and answers (`flaky`) whose connection breaks
 * at the first try after some text. Waits are random, so that cuts fall anywhere.
 */
export const createSlowModel = (random: SeededRandom): MockScript => {
  const broken = new Set<string>();
  const before = (): Promise<void> => letTimePass(random.below(20));
  return ({ user, toolResults }) => {
    const text = Array.from({ length: random.between(8, 40) }, () => random.pick(WORDS));
    if (toolResults.length > 0) return { reply: { text: [`It is ${toolResults[0]}. `, ...text] }, before };
    if (user.includes('sum'))
      return { tools: [{ id: 'c', name: 'calculator', input: { expression: '6*7' } }] };
    if (!user.includes('flaky') || broken.has(user)) return { reply: { text }, before };
    broken.add(user);
    const breaksAt = random.between(3, 8);
    return {
      reply: { text },
      before: async (_piece, index) => {
        await before();
        if (index === breaksAt) throw new Error('the provider resets the connection');
      },
    };
  };
};

const toWsUrl = (url: string): string => `${url.replace(/^http/, 'ws')}/ws`;

const killAgent = ({ stackJson }: TestStack, random: SeededRandom): void => {
  const pids = stackJson().services.agent.flatMap(({ pid }) => (pid === null ? [] : [pid]));
  if (pids.length === 0) return;
  try {
    process.kill(random.pick(pids), 'SIGKILL');
  } catch (error) {
    // The process may have died of the previous kill.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
};

/**
 * Two clients of one session: one that stays at the first gateway, one that is cut and resumes at
 * any gateway.
 */
const readTwice = (stack: TestStack, random: SeededRandom, sessionId: string) => ({
  sessionId,
  steady: followSession({ sessionId, nextUrl: () => toWsUrl(stack.gatewayUrl), nextCut: () => null }),
  dropping: followSession({
    sessionId,
    nextUrl: () => random.pick(stack.wsUrls()),
    nextCut: () => ({ frames: random.between(1, 12), ms: random.below(400) }),
  }),
});
type Readers = ReturnType<typeof readTwice>;

/** Waits until every accepted turn is done. Returns the offset of the last frame. */
const waitForLastOffset = async (steady: FollowedSession): Promise<number> => {
  const count = (kind: string): number => steady.frames.filter(({ event }) => event === kind).length;
  while (count('done') < count('accepted') && steady.problems.length === 0) await sleep(POLL_MS);
  await steady.waitForOffset(0);
  return steady.frames.at(-1)?.offset ?? 0;
};

const collect = async ({ sessionId, steady, dropping }: Readers): Promise<SessionSeen> => {
  const lastOffset = await waitForLastOffset(steady);
  await dropping.waitForOffset(lastOffset);
  return {
    sessionId,
    lastOffset,
    frames: steady.frames.length,
    restarts: steady.frames.filter(({ event }) => event === 'restart').length,
    drops: dropping.dropsInStream(),
    uninterrupted: assembleFrames(steady.frames),
    dropped: assembleFrames(dropping.frames),
  };
};

class DroppedClients {
  private readonly gateway: ReconnectingClient;
  private readonly readers: Readers[] = [];
  private readonly turns: SentTurn[] = [];
  private readonly cancelledTurns: SentTurn[] = [];
  private hasFailed = false;

  constructor(private readonly options: DropsOptions) {
    this.gateway = createReconnectingClient(() => options.stack.wsUrl);
  }

  async execute(): Promise<DropsResult> {
    try {
      const peers = Array.from({ length: this.options.sessions }, (_, n) => `p${n}`);
      const conversations = Promise.all(peers.map((peer) => this.converse(peer)));
      conversations.catch(() => (this.hasFailed = true));
      await this.killAgents();
      await conversations;
      const sessions = await Promise.all(this.readers.map(collect));
      return { sessions, turns: this.turns, cancelledTurns: this.cancelledTurns };
    } finally {
      const followers = this.readers.flatMap(({ steady, dropping }) => [steady, dropping]);
      await Promise.all(followers.map((follower) => follower.stop()));
      await this.gateway.disconnect();
    }
  }

  private dropCount(): number {
    return this.readers.reduce((sum, { dropping }) => sum + dropping.dropsInStream(), 0);
  }

  private isOver(): boolean {
    return this.hasFailed || this.dropCount() >= this.options.drops;
  }

  private async killAgents(): Promise<void> {
    const { stack, random, killEvery } = this.options;
    for (let kills = 1; !this.isOver();) {
      await sleep(POLL_MS);
      if (this.dropCount() < kills * killEvery) continue;
      kills++;
      killAgent(stack, random);
    }
  }

  /** Sends turn after turn in one session until enough connections were cut. */
  private async converse(peer: string): Promise<void> {
    const { stack, random } = this.options;
    const client = await this.gateway.connected();
    const address = { channel: 'load', account: 'load', peer };
    const { sessionId } = (await client.call('session.new', address)) as { sessionId: string };
    this.readers.push(readTwice(stack, random, sessionId));
    for (let n = 0; n === 0 || !this.isOver(); n++) {
      const kind = random.pick(KINDS);
      const content = `${kind} ${peer} ${n}`;
      const sent = sendTurn(this.gateway, { key: content, peer, content });
      if (kind === 'cancel') await this.cancelSoon(client, sessionId);
      (kind === 'cancel' ? this.cancelledTurns : this.turns).push(await sent);
    }
  }

  /**
   * Cancels the open turn of a session after a while. The request fails when its agent is killed.
   */
  private async cancelSoon(client: SocketClient, sessionId: string): Promise<void> {
    await letTimePass(this.options.random.below(80));
    await client.call('session.cancel', { sessionId }).catch(() => undefined);
  }
}

/** Sends turns in several sessions while their clients are cut off and agents are killed. */
export const dropClients = (options: DropsOptions): Promise<DropsResult> =>
  new DroppedClients(options).execute();

/** Reads finished sessions from their beginning over connections that are cut. */
export const readAgain = async (
  { stack, random }: Pick<DropsOptions, 'stack' | 'random'>,
  seen: readonly SessionSeen[],
): Promise<{ readonly drops: number; readonly assembled: string }[]> =>
  Promise.all(
    seen.map(async ({ sessionId, lastOffset }) => {
      const { dropping, steady } = readTwice(stack, random, sessionId);
      await dropping.waitForOffset(lastOffset);
      await Promise.all([dropping.stop(), steady.stop()]);
      return { drops: dropping.dropsInStream(), assembled: assembleFrames(dropping.frames) };
    }),
  );
