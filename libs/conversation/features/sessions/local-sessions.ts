import type { CreateSession, LocalSession } from './local-session.js';
import type { SessionFold } from './session-fold.js';
import type { SessionRef } from './session-queries.js';

/** A session of this process, with its last use. */
export interface SessionEntry extends LocalSession {
  usedAt: number;
  /** Version of the last snapshot that this process knows of. */
  snapshotAt: number | null;
}

/** Maximum number of sessions of a process. */
const MAX_SESSIONS = 2_000;

const keyOf = ({ workspace, sessionId }: SessionRef): string => `${workspace}/${sessionId}`;

/** Cache of the sessions that this process knows. */
export class LocalSessions {
  /** Least recently used first. */
  private readonly entries = new Map<string, SessionEntry>();

  constructor(
    private readonly createSession: CreateSession,
    private readonly maxSessions = MAX_SESSIONS,
  ) {}

  /** Returns a session, and adds it if it is not here. */
  open(session: SessionRef): SessionEntry {
    const entry = this.find(session) ?? this.create(session, null);
    this.entries.delete(keyOf(session));
    this.add(entry);
    return entry;
  }

  find(session: SessionRef): SessionEntry | undefined {
    return this.entries.get(keyOf(session));
  }

  /** Creates a session that is not in the cache. */
  create(session: SessionRef, known: SessionFold | null): SessionEntry {
    return { ...this.createSession(session, known), usedAt: 0, snapshotAt: known && 0 };
  }

  add(entry: SessionEntry): void {
    this.entries.set(keyOf(entry.actor), entry);
    entry.usedAt = performance.now();
  }

  remove(session: SessionRef): void {
    this.entries.delete(keyOf(session));
  }

  all(): IterableIterator<SessionEntry> {
    return this.entries.values();
  }

  /** Returns the sessions whose driver is running. */
  working(): SessionEntry[] {
    return [...this.entries.values()].filter(({ driver }) => driver.isWorking());
  }

  /** Returns by how many the sessions exceed their maximum. */
  surplus(): number {
    return this.entries.size - this.maxSessions;
  }

  clear(): void {
    this.entries.clear();
  }
}
