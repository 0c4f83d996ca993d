import type { ToolWorkers, ToolWorkersHint } from '@antiphon/contracts/sandbox';

/** Interval of the checks for silent gateways, ms. */
export const WORKER_TABLE_TICK_MS = 250;
/**
 * Number of checks without a sign of a gateway after which it is gone: 2.5 s. A pause of this
 * process counts as one check.
 */
const MAX_SILENT_TICKS = 10;

/** A version of a tool in a workspace. */
export interface ToolVersion {
  readonly workspace: string;
  readonly name: string;
  readonly digest: string;
}

interface Gateway {
  readonly id: string;
  revision: number;
  silentTicks: number;
  isStopping: boolean;
  /** Number of workers by workspace, and by name and digest. */
  readonly workspaces: Map<string, ReadonlyMap<string, number>>;
  /** Calls of this process that it runs. */
  inFlight: number;
  readonly onGone: Set<() => void>;
}

const keyOf = (name: string, digest: string): string => `${name}\n${digest}`;

const toMap = (tools: readonly ToolWorkers[]): ReadonlyMap<string, number> =>
  new Map(tools.map(({ name, digest, workers }) => [keyOf(name, digest), workers]));

/** Gateways with programs that serve tools, as their messages tell. Each sandbox process has one. */
export class ToolWorkerTable {
  readonly #gateways = new Map<string, Gateway>();
  readonly #onChange = new Set<() => void>();

  /** `askAll` asks the gateways for all of their programs. */
  constructor(private readonly askAll: () => void) {}

  /** Applies a message of a gateway. Returns the workspace that it changes, if it is one. */
  observe({ gateway: id, revision, change, all, isStopping = false }: ToolWorkersHint): string | undefined {
    const gateway = this.#gateways.get(id) ?? this.#add(id);
    gateway.silentTicks = 0;
    gateway.isStopping = isStopping;
    if (all) {
      gateway.workspaces.clear();
      for (const { workspace, tools } of all) gateway.workspaces.set(workspace, toMap(tools));
      gateway.revision = revision;
    } else if (change && revision === gateway.revision + 1) {
      gateway.workspaces.set(change.workspace, toMap(change.tools));
      gateway.revision = revision;
    } else if (revision !== gateway.revision) this.askAll();
    for (const notify of [...this.#onChange]) notify();
    return change?.workspace;
  }

  /** Removes gateways that are silent. Called at an interval. */
  tick(): void {
    for (const gateway of this.#gateways.values()) {
      gateway.silentTicks++;
      if (gateway.silentTicks < MAX_SILENT_TICKS) continue;
      this.#gateways.delete(gateway.id);
      for (const notify of gateway.onGone) notify();
    }
  }

  /** Returns the number of programs that serve a version. */
  count({ workspace, name, digest }: ToolVersion): number {
    let sum = 0;
    for (const gateway of this.#gateways.values())
      sum += gateway.workspaces.get(workspace)?.get(keyOf(name, digest)) ?? 0;
    return sum;
  }

  /** Returns the number of programs that serve a tool in any version. */
  countAny(workspace: string, name: string): number {
    let sum = 0;
    for (const { workspaces } of this.#gateways.values())
      for (const [key, workers] of workspaces.get(workspace) ?? [])
        if (key.startsWith(`${name}\n`)) sum += workers;
    return sum;
  }

  /**
   * Returns the gateway with the least calls of this process for each program of a version, except
   * those of `tried`; undefined if there is none.
   */
  choose({ workspace, name, digest }: ToolVersion, tried: ReadonlySet<string>): string | undefined {
    let best: { readonly id: string; readonly load: number } | undefined;
    for (const { id, isStopping, inFlight, workspaces } of this.#gateways.values()) {
      const workers = workspaces.get(workspace)?.get(keyOf(name, digest)) ?? 0;
      if (workers === 0 || isStopping || tried.has(id)) continue;
      const load = inFlight / workers;
      if (best === undefined || load < best.load) best = { id, load };
    }
    return best?.id;
  }

  /** Counts a call of a gateway until the returned function is called. `onGone`: it is gone. */
  begin(id: string, onGone: () => void): () => void {
    const gateway = this.#gateways.get(id);
    if (!gateway) {
      onGone();
      return () => undefined;
    }
    gateway.inFlight++;
    gateway.onGone.add(onGone);
    return () => {
      gateway.inFlight--;
      gateway.onGone.delete(onGone);
    };
  }

  /** Calls back after each message, until the returned function is called. */
  onChange(listener: () => void): () => void {
    this.#onChange.add(listener);
    return () => void this.#onChange.delete(listener);
  }

  #add(id: string): Gateway {
    const gateway: Gateway = {
      ...{ id, revision: 0, silentTicks: 0, isStopping: false, inFlight: 0 },
      ...{ workspaces: new Map(), onGone: new Set() },
    };
    this.#gateways.set(id, gateway);
    return gateway;
  }
}
