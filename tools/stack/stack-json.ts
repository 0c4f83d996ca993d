import { rmSync } from 'node:fs';
import type { ServiceName } from '@antiphon/contracts/messaging';
import { readJson, writeJsonAtomic } from '@antiphon/bootstrap/files';
import { homeLayout } from '@antiphon/bootstrap/project';

export type ProcessState = 'starting' | 'ready' | 'restarting' | 'stopping' | 'stopped';

/** One process of a service. */
export interface ServiceEntry {
  readonly id: string;
  /** Null while it is being started again. */
  readonly pid: number | null;
  /** HTTP: the gateway's public port, the others' health; null until it is ready. */
  readonly port: number | null;
  readonly state: ProcessState;
  readonly restarts: number;
  /** ISO 8601. */
  readonly startedAt: string | null;
}

export interface EngineEntry {
  /** Null for an engine that somebody else runs. */
  readonly pid: number | null;
  readonly port: number | null;
  /** Without credentials. */
  readonly address: string;
  readonly version: string | null;
  /** True when one of the three `ANTIPHON_*` addresses points at it. */
  readonly external: boolean;
  readonly state: ProcessState;
  readonly restarts: number;
}

/** `stack.json` in a home (contract §1): what runs, where, and where its credentials lie. No secret is in it. */
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
    readonly temporalUi?: string;
  };
  readonly adminKeyFile: string;
  /** Mode 600 each: the database's URL as its owner, and the NATS users with their passwords (JSON). */
  readonly credentials: { readonly databaseUrlFile: string; readonly natsUsersFile: string };
  readonly logs: string;
}

/** The stack of a home as it last described itself, or null. It may be of a supervisor that was killed since. */
export const readStack = (home: string): StackJson | null =>
  readJson(homeLayout(home).stackFile) as StackJson | null;

export const writeStack = (home: string, stack: StackJson): void =>
  writeJsonAtomic(homeLayout(home).stackFile, stack);

export const removeStack = (home: string): void => rmSync(homeLayout(home).stackFile, { force: true });
