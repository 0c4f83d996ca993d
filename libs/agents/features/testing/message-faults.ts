import { randomUUID } from 'node:crypto';
import type { AntiphonConfig } from '@antiphon/config';
import type { AgentMessage } from '@antiphon/contracts/agent';
import { childEndedAppend } from '../lifecycle/child-ended.js';
import { Messages } from '../messages/messages.handler.js';
import {
  WORKSPACE,
  newAddress,
  submitTo,
  testConfig,
  until,
} from '@antiphon/agent-features/testing/agent-world';
import type { AgentWorld, TestProcess } from '@antiphon/agent-features/testing/agent-world';
import { letTimePass } from '@antiphon/testing/waits';

/** Load of one run: messages and ends of children, by several senders, while processes are killed. */
export interface FaultLoad {
  readonly recipients: readonly string[];
  readonly messages: number;
  readonly children: number;
  readonly senders: number;
  readonly kills: number;
  readonly killEveryMs: number;
}

export interface FaultReport {
  readonly sent: number;
  readonly lost: readonly string[];
  readonly twice: readonly string[];
  readonly misdirected: readonly string[];
  readonly kills: number;
}

/** Time after which a sender takes its process for dead, ms. */
const GIVE_UP_MS = 1_500;

export const configOfAgents = (ids: readonly string[]): AntiphonConfig => {
  const base = testConfig();
  const [first] = base.agents;
  if (!first) throw new Error('no agent');
  return { ...base, agents: ids.map((id) => ({ ...first, id, name: id, tools: [] })) };
};

const within = <T>(work: Promise<T>): Promise<T> =>
  Promise.race([
    work,
    new Promise<never>((_resolve, reject) =>
      setTimeout(() => reject(new Error('no answer')), GIVE_UP_MS).unref(),
    ),
  ]);

interface Seen {
  readonly message: AgentMessage;
  readonly agentId: string;
}

/** Sends and reads messages while processes are killed, and compares what came with what was sent. */
export class MessageFaults {
  private readonly processes: TestProcess[] = [];
  private readonly expected = new Map<string, string>();
  private isOver = false;

  constructor(
    private readonly world: AgentWorld,
    private readonly load: FaultLoad,
  ) {}

  async run(): Promise<FaultReport> {
    const { load } = this;
    this.processes.push(this.start(), this.start());
    const reading = Promise.all(load.recipients.map((agentId) => this.takeTurns(agentId)));
    const killing = this.killProcesses();
    const jobs = [...this.messageJobs(), ...this.childJobs()];
    const sender = async (): Promise<void> => {
      for (let job = jobs.shift(); job; job = jobs.shift()) await this.repeat(job);
    };
    await Promise.all(Array.from({ length: load.senders }, sender));
    const kills = await killing;
    await until(async () => (await this.unread()) === 0, 300_000);
    this.isOver = true;
    await reading;
    return { sent: this.expected.size, kills, ...(await this.compare()) };
  }

  private start(): TestProcess {
    return this.world.process({ config: configOfAgents(this.load.recipients) });
  }

  private any(): TestProcess {
    return this.processes[Math.floor(Math.random() * this.processes.length)] as TestProcess;
  }

  private recipient(index: number): string {
    return this.load.recipients[index % this.load.recipients.length] ?? '';
  }

  private messageJobs(): (() => Promise<unknown>)[] {
    return Array.from({ length: this.load.messages }, (_, index) => {
      const text = `message ${index}`;
      const agent = this.recipient(index);
      this.expected.set(text, agent);
      return () =>
        this.any()
          .get(Messages)
          .send({
            workspace: WORKSPACE,
            message: { type: 'AgentSpoke', to: { agent }, content: { text } },
            actor: { caller: 'spec', role: 'admin', agentId: null },
            idempotencyKey: text,
          });
    });
  }

  private childJobs(): (() => Promise<unknown>)[] {
    return Array.from({ length: this.load.children }, (_, index) => {
      const text = `child ${index}`;
      const parentId = this.recipient(index);
      this.expected.set(text, parentId);
      const at = new Date().toISOString();
      const result = { status: 'completed' as const, text, sessionId: null, turnId: null, code: null };
      const ended = { workspace: WORKSPACE, parentId, childId: `child-${index}`, result, causeId: text, at };
      return async () => {
        const append = childEndedAppend(ended);
        // As one request of a client repeats it: same event, same time.
        const streams = [append];
        return this.any().runtime.services.store.append({ workspace: WORKSPACE, streams });
      };
    });
  }

  /** Repeats a request until it has an answer: the client of a dead process asks another one. */
  private async repeat(job: () => Promise<unknown>): Promise<void> {
    for (;;) {
      const isDone = await within(job()).then(
        () => true,
        (error: unknown) => (error as { code?: string }).code === 'LOG.EVENT_ID_CONFLICT',
      );
      if (isDone) return;
    }
  }

  private async takeTurns(agentId: string): Promise<void> {
    while (!this.isOver) {
      const turn = submitTo(this.any(), { address: newAddress(agentId) }, randomUUID());
      await within(turn.then(({ sessionId }) => this.world.ended(sessionId))).catch(() => undefined);
    }
  }

  private async killProcesses(): Promise<number> {
    for (let kill = 0; kill < this.load.kills; kill++) {
      await letTimePass(this.load.killEveryMs);
      this.processes.push(this.start());
      const victim = this.processes.shift() as TestProcess;
      victim.kill();
      await this.world.handleExit(victim);
    }
    return this.load.kills;
  }

  private async unread(): Promise<number> {
    const { inboxes } = this.any().runtime.services;
    const counts = this.load.recipients.map(async (agentId) => {
      const state = await inboxes.readState(WORKSPACE, agentId);
      return (await inboxes.readUnread(WORKSPACE, agentId, state, 1)).length;
    });
    return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0);
  }

  private async compare(): Promise<Pick<FaultReport, 'lost' | 'twice' | 'misdirected'>> {
    const seen = await this.readSeen();
    const texts = seen.map(({ message }) => String(message.content['text']));
    const counts = new Map<string, number>();
    for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1);
    return {
      lost: [...this.expected.keys()].filter((text) => !counts.has(text)),
      twice: [...counts].filter(([, count]) => count > 1).map(([text]) => text),
      misdirected: seen
        .filter(({ message, agentId }) => this.expected.get(String(message.content['text'])) !== agentId)
        .map(({ message }) => String(message.content['text'])),
    };
  }

  /** Returns the messages in the contexts of all sessions, with the agent of each session. */
  private async readSeen(): Promise<Seen[]> {
    const { store } = this.world;
    const agents = new Map<string, string>();
    const seen: Seen[] = [];
    for (let after = 0; ;) {
      const { events, hasMore } = await store.readLogPage({ after, limit: 5_000, categories: ['session'] });
      for (const { streamId, type, data, position } of events) {
        after = position;
        if (type === 'SessionStarted') agents.set(streamId, String(data['agentId']));
        if (type !== 'MessagesReceived') continue;
        const agentId = agents.get(streamId) ?? '';
        for (const message of data['messages'] as unknown as AgentMessage[]) seen.push({ message, agentId });
      }
      if (!hasMore) return seen;
    }
  }
}
