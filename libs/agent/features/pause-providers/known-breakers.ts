import type { BreakerKey, BreakerRow } from './breaker-store.js';

/** What this process knows of the rows; no more than a second old while the database answers. */
export interface KnownBreakers {
  get(key: BreakerKey): BreakerRow | undefined;
  ofWorkspace(workspace: string): readonly BreakerRow[];
  all(): readonly BreakerRow[];
  put(row: BreakerRow): void;
  forget(key: BreakerKey): void;
  /** Reads all rows anew, unless what is known has changed meanwhile: then the next look tells. */
  replace(read: () => Promise<readonly BreakerRow[]>): Promise<void>;
}

const idOf = ({ workspace, provider }: BreakerKey): string => `${workspace}\0${provider}`;

export const createKnownBreakers = (): KnownBreakers => {
  let rows = new Map<string, BreakerRow>();
  let changes = 0;
  return {
    get: (key) => rows.get(idOf(key)),
    // Nothing is in trouble nearly always: then nothing is looked through for a turn.
    ofWorkspace: (workspace) =>
      rows.size === 0 ? [] : [...rows.values()].filter((row) => row.workspace === workspace),
    all: () => [...rows.values()],
    put: (row) => {
      changes += 1;
      rows.set(idOf(row), row);
    },
    forget: (key) => {
      changes += 1;
      rows.delete(idOf(key));
    },
    replace: async (read) => {
      const before = changes;
      const now = await read();
      if (before === changes) rows = new Map(now.map((row) => [idOf(row), row]));
    },
  };
};
