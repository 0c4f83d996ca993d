import type pg from 'pg';
import { isTurnEnd, type SamplesStored, type Usage } from '@antiphon/contracts/agent';
import { acrossWorkspaces, translateDatabaseError } from '@antiphon/database';
import { repeatEvery, type Clock } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import type { AgentFolders } from './agent-folders.js';

/** Interval of samples, ms. Samples of all processes have the same times. */
export const SAMPLE_MS = 30_000;
const DAY_MS = 24 * 3_600_000;
/** Interval of the deletion of old samples, ms, and the size of one transaction. */
const DELETE_MS = 3_600_000;
const DELETE_BATCH = 5_000;
/** Number of agents whose folders are watched for changes, those that worked last. */
const MAX_WATCHED = 1_000;
/** Size of a block of the operating system's counters of file input and output, bytes. */
const BLOCK_BYTES = 512;

/** The part of a session's event that the sampler counts. */
interface CountedEvent {
  readonly type: string;
  readonly data: object;
}

interface Work {
  /** Number of events that the work of the agent appended: its share of the process. */
  events: number;
  turns: number;
  modelCalls: number;
  toolCalls: number;
  inputTokens: number;
  outputTokens: number;
}
const emptyWork = (): Work => ({
  ...{ events: 0, turns: 0, modelCalls: 0, toolCalls: 0 },
  ...{ inputTokens: 0, outputTokens: 0 },
});

/** Resources that the process has used so far. */
export interface ProcessUse {
  readonly cpuMs: number;
  readonly heapBytes: number;
  readonly readBytes: number;
  readonly writtenBytes: number;
}

export const readProcessUse = (): ProcessUse => {
  const { userCPUTime, systemCPUTime, fsRead, fsWrite } = process.resourceUsage();
  return {
    cpuMs: (userCPUTime + systemCPUTime) / 1_000,
    heapBytes: process.memoryUsage().heapUsed,
    readBytes: fsRead * BLOCK_BYTES,
    writtenBytes: fsWrite * BLOCK_BYTES,
  };
};

export interface AgentMetricsDeps {
  readonly pool: pg.Pool;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly folders: AgentFolders;
  /** Unique for this incarnation of the process. */
  readonly process: string;
  /** Days before samples are deleted; 0 means never. */
  readonly metricsDays: number;
  readonly readUse?: () => ProcessUse;
  /** Called for each workspace that has new samples. */
  readonly announce?: (stored: SamplesStored) => void;
}

const INSERT_SQL = `insert into agent_metrics select * from jsonb_populate_recordset(null::agent_metrics, $1::jsonb)
  on conflict do nothing`;
const DELETE_SQL = `delete from agent_metrics where ctid = any (array(
  select ctid from agent_metrics where at < $1 limit ${DELETE_BATCH}))`;

const keyOf = (workspace: string, agentId: string): string => `${workspace}\n${agentId}`;

/**
 * Samples what the agents of this process use, every 30 s. Processor time, memory and disk traffic
 * of the process are divided by the events that each agent's work appended. An agent that did not
 * work, and whose folder is as before, gets no sample.
 */
export class AgentMetricsSampler {
  readonly #deps: AgentMetricsDeps;
  readonly #readUse: () => ProcessUse;
  readonly #stopping = new AbortController();
  #work = new Map<string, Work>();
  /** Bytes of the folders of agents, those that worked last at the end. */
  readonly #disk = new Map<string, number>();
  #before: ProcessUse;
  #running: Promise<unknown> = Promise.resolve();

  constructor(deps: AgentMetricsDeps) {
    this.#deps = deps;
    this.#readUse = deps.readUse ?? readProcessUse;
    this.#before = this.#readUse();
  }

  /** Counts work of an agent that this process has committed. */
  record(workspace: string, agentId: string, events: readonly CountedEvent[]): void {
    const key = keyOf(workspace, agentId);
    const work = this.#work.get(key) ?? emptyWork();
    this.#work.set(key, work);
    work.events += events.length;
    for (const { type, data } of events) {
      if (isTurnEnd(type)) work.turns++;
      else if (type === 'ModelCallStarted') work.modelCalls++;
      else if (type === 'ToolCallRequested') work.toolCalls++;
      else if (type === 'ModelCallCompleted') {
        const { usage } = data as { readonly usage: Usage };
        work.inputTokens += usage.inputTokens;
        work.outputTokens += usage.outputTokens;
      }
    }
  }

  onApplicationBootstrap(): void {
    const { signal } = this.#stopping;
    this.#running = Promise.all([
      repeatEvery(() => this.#attempt(() => this.sample()), SAMPLE_MS, signal),
      repeatEvery(() => this.#attempt(() => this.deleteOld()), DELETE_MS, signal),
    ]);
  }

  async onModuleDestroy(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
    // The work since the last sample.
    await this.#attempt(() => this.sample());
  }

  /** Stores the samples of the time since the last call. */
  async sample(): Promise<void> {
    const { clock, process } = this.#deps;
    const at = new Date(Math.floor(clock.now() / SAMPLE_MS) * SAMPLE_MS).toISOString();
    const use = this.#readUse();
    const work = this.#work;
    this.#work = new Map();
    const disks = await this.#measureFolders(work);
    const total = [...work.values()].reduce((sum, { events }) => sum + events, 0);
    const rows = [...disks].map(([key, diskBytes]) => {
      const [workspace = '', agent_id = ''] = key.split('\n');
      const done = work.get(key) ?? emptyWork();
      const share = total === 0 ? 0 : done.events / total;
      return {
        ...{ workspace, agent_id, at, process },
        cpu_ms: Math.max(0, use.cpuMs - this.#before.cpuMs) * share,
        memory_bytes: Math.round(use.heapBytes * share),
        disk_bytes: diskBytes,
        disk_read_bytes: Math.round(Math.max(0, use.readBytes - this.#before.readBytes) * share),
        disk_written_bytes: Math.round(Math.max(0, use.writtenBytes - this.#before.writtenBytes) * share),
        ...{ turns: done.turns, model_calls: done.modelCalls, tool_calls: done.toolCalls },
        ...{ input_tokens: done.inputTokens, output_tokens: done.outputTokens },
      };
    });
    this.#before = use;
    if (rows.length > 0) await this.#query(INSERT_SQL, [JSON.stringify(rows)]);
    for (const workspace of new Set(rows.map((row) => row.workspace)))
      this.#deps.announce?.({ workspace, at });
  }

  /** Deletes samples that are older than `metricsDays`. Returns their number. */
  async deleteOld(): Promise<number> {
    const { clock, metricsDays } = this.#deps;
    if (metricsDays === 0) return 0;
    const before = new Date(clock.now() - metricsDays * DAY_MS).toISOString();
    let deleted = 0;
    for (let count = DELETE_BATCH; count === DELETE_BATCH; deleted += count)
      count = (await this.#query(DELETE_SQL, [before])).rowCount ?? 0;
    return deleted;
  }

  /** Returns the bytes of the folders of agents that worked, or whose folder changed. */
  async #measureFolders(work: ReadonlyMap<string, Work>): Promise<Map<string, number>> {
    const found = new Map<string, number>();
    for (const key of new Set([...this.#disk.keys(), ...work.keys()])) {
      const [workspace = '', agentId = ''] = key.split('\n');
      const bytes = await this.#deps.folders.measure(workspace, agentId);
      const hasWorked = work.has(key);
      if (hasWorked || bytes !== this.#disk.get(key)) found.set(key, bytes);
      if (hasWorked) this.#disk.delete(key);
      this.#disk.set(key, bytes);
    }
    for (const key of this.#disk.keys()) if (this.#disk.size > MAX_WATCHED) this.#disk.delete(key);
    return found;
  }

  async #attempt(work: () => Promise<unknown>): Promise<void> {
    try {
      await work();
    } catch (err) {
      this.#deps.logger.warn({ err }, 'agent metrics not stored');
    }
  }

  async #query(text: string, values: unknown[]): Promise<pg.QueryResult> {
    try {
      return await acrossWorkspaces(this.#deps.pool).query(text, values);
    } catch (error) {
      throw translateDatabaseError(error);
    }
  }
}
