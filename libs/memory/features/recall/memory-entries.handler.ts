import { Controller, Inject } from '@nestjs/common';
import type pg from 'pg';
import type { z } from 'zod';
import { queryMemory, recallMemory, turnsOfEntry } from '@antiphon/contracts/memory';
import { requirePosition } from '@antiphon/event-store';
import { notFound, sleep } from '@antiphon/kernel';
import { searchFacts } from '@antiphon/memory-domain';
import { HandleRequest } from '@antiphon/messaging';
import { DATABASE_POOL } from '@antiphon/service-host';
import { EntryReader } from './read-entries.js';

type Query = z.output<typeof queryMemory.request>;
type Recall = z.output<typeof recallMemory.request>;
type Turns = z.output<typeof turnsOfEntry.request>;

/** Maximum wait for the projection, so that a query has what was committed before it, ms. */
const MAX_WAIT_MS = 3_000;
const POLL_MS = 20;

const unknownEntry = (memoryId: string): Error =>
  notFound('MEMORY.ENTRY_UNKNOWN', `there is no memory ${memoryId}`, { data: { memoryId } });

const unknownSession = (sessionId: string): Error =>
  notFound('MEMORY.SESSION_UNKNOWN', `there is no session ${sessionId}`, { data: { sessionId } });

/** Returns entries of memory to clients. */
@Controller()
export class MemoryEntries {
  readonly #reader: EntryReader;

  constructor(@Inject(DATABASE_POOL) pool: pg.Pool) {
    this.#reader = new EntryReader(pool);
  }

  @HandleRequest(queryMemory)
  async query(request: Query): Promise<z.input<typeof queryMemory.reply>> {
    const { workspace, query, detail, limit, includeSuperseded, at } = request;
    const progress = await this.#waitForProjection(workspace, at);
    const position = Math.min(requirePosition(at, progress.head), progress.position);
    const target = await this.#targetOf(request, position);
    const newest = await this.#reader.list(workspace, target, { at: position, includeSuperseded });
    const matches = query === undefined ? newest : searchFacts([...newest].reverse(), query);
    const entries = matches.slice(0, limit);
    return {
      entries: detail === 'full' ? await this.#reader.withSources(workspace, entries) : entries,
      position,
      head: progress.head,
    };
  }

  @HandleRequest(recallMemory)
  async recall({
    workspace,
    callerAgent,
    memoryId,
    at,
  }: Recall): Promise<z.input<typeof recallMemory.reply>> {
    const { head } = at === undefined ? { head: undefined } : await this.#waitForProjection(workspace, at);
    const asOf = head === undefined ? {} : { atPosition: requirePosition(at, head), head };
    const entry = await this.#reader.find(workspace, memoryId, at);
    if (entry === null) throw unknownEntry(memoryId);
    await this.#requireOwner(workspace, memoryId, callerAgent);
    const [full] = await this.#reader.withSources(workspace, [entry]);
    return { ...(full ?? entry), ...asOf };
  }

  @HandleRequest(turnsOfEntry)
  async turns(request: Turns): Promise<z.input<typeof turnsOfEntry.reply>> {
    const { workspace, callerAgent, memoryId, before, limit, at } = request;
    const progress = await this.#waitForProjection(workspace, at);
    const position = Math.min(requirePosition(at, progress.head), progress.position);
    if ((await this.#reader.find(workspace, memoryId, position)) === null) throw unknownEntry(memoryId);
    await this.#requireOwner(workspace, memoryId, callerAgent);
    const upTo = before === undefined ? position : Math.min(position, before - 1);
    const found = await this.#reader.turnsOf(workspace, memoryId, { upTo, limit: limit + 1 });
    return { turns: found.slice(0, limit), hasMore: found.length > limit, position, head: progress.head };
  }

  /** Throws `MEMORY.ENTRY_UNKNOWN` if the key of an agent asks for an entry of another agent. */
  async #requireOwner(workspace: string, memoryId: string, callerAgent: string | undefined): Promise<void> {
    if (callerAgent !== undefined && !(await this.#reader.belongsTo(workspace, memoryId, callerAgent)))
      throw unknownEntry(memoryId);
  }

  /** Returns what a query is about. An agent's key reads its own sessions, and no other. */
  async #targetOf({ workspace, callerAgent, target }: Query, position: number) {
    if ('agentId' in target) {
      if (callerAgent !== undefined && callerAgent !== target.agentId)
        throw notFound('AGENT.NOT_FOUND', `there is no agent ${target.agentId}`);
      return { kind: 'agent', id: target.agentId } as const;
    }
    const agent = await this.#reader.agentOf(workspace, target.sessionId, position);
    if (agent === null || (callerAgent !== undefined && agent !== callerAgent))
      throw unknownSession(target.sessionId);
    return { kind: 'session', id: target.sessionId } as const;
  }

  async #waitForProjection(workspace: string, at?: number): Promise<{ position: number; head: number }> {
    let progress = await this.#reader.progress(workspace);
    const wanted = Math.min(at ?? progress.head, progress.head);
    for (let waited = 0; progress.position < wanted && waited < MAX_WAIT_MS; waited += POLL_MS) {
      await sleep(POLL_MS);
      progress = await this.#reader.progress(workspace);
    }
    return progress;
  }
}
