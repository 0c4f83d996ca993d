import { rmSync } from 'node:fs';
import type { ServiceName } from '@antiphon/contracts/messaging';
import { readJson, writeJsonAtomic } from '@antiphon/bootstrap/files';
import { identify } from '@antiphon/bootstrap/processes';
import { homeLayout } from '@antiphon/bootstrap/project';

export type ProcessState = 'starting' | 'ready' | 'restarting' | 'stopping' | 'stopped';

/** One process of a service. */
export interface ServiceEntry {
  readonly id: string;
  /** Null during a restart. */
  readonly pid: number | null;
  /** HTTP port, public for the gateway; null until it is ready. */
  readonly port: number | null;
  readonly state: ProcessState;
  readonly restarts: number;
  /** ISO 8601. */
  readonly startedAt: string | null;
  /** Id of the process that hosts this service; absent for a process of its own. */
  readonly process?: string;
}

export interface EngineEntry {
  /** Null for an external engine. */
  readonly pid: number | null;
  readonly port: number | null;
  /** Without credentials. */
  readonly address: string;
  readonly version: string | null;
  /** True when one of the `ANTIPHON_*` addresses points at it. */
  readonly external: boolean;
  readonly state: ProcessState;
  readonly restarts: number;
}

/** Content of `stack.json` in a home: processes, addresses and the paths of credentials. */
export interface StackJson {
  readonly state: 'starting' | 'ready' | 'stopping';
  readonly home: string;
  readonly supervisor: { readonly pid: number; readonly startedAt: string };
  readonly services: Readonly<Record<ServiceName, readonly ServiceEntry[]>>;
  readonly engines: {
    readonly postgres: EngineEntry;
    readonly nats: EngineEntry;
    readonly temporal: EngineEntry;
  };
  readonly urls: {
    readonly gateway: string | null;
    readonly gateways: readonly string[];
    /** Absent until a gateway is ready. */
    readonly dashboard?: string;
    readonly temporalUi?: string;
  };
  readonly adminKeyFile: string;
  /** Master keys of stored credentials, the newest first. */
  readonly masterKeyFile: string;
  /** Files of mode 600 with the owner's database URL, and the NATS users with passwords (JSON). */
  readonly credentials: { readonly databaseUrlFile: string; readonly natsUsersFile: string };
  readonly logs: string;
}

/** Reads the stack of a home, or null. Its supervisor may have been killed since. */
export const readStack = (home: string): StackJson | null =>
  readJson(homeLayout(home).stackFile) as StackJson | null;

/**
 * Returns the names of processes in `stack.json` that have ended, such as `agent-1 (pid 12)`. The
 * file may be older than their ends, after a kill of the supervisor or on a full disk.
 */
export const endedProcesses = ({ supervisor, services, engines }: StackJson): readonly string[] => {
  const named = [
    { id: 'supervisor', pid: supervisor.pid },
    ...Object.values(services).flat(),
    ...Object.entries(engines).map(([id, { pid }]) => ({ id, pid })),
  ];
  return named.flatMap(({ id, pid }) =>
    pid !== null && identify(pid) === null ? [`${id} (pid ${pid})`] : [],
  );
};

export const writeStack = (home: string, stack: StackJson): void =>
  writeJsonAtomic(homeLayout(home).stackFile, stack);

export const removeStack = (home: string): void => rmSync(homeLayout(home).stackFile, { force: true });
