import type { SessionAddress, SessionTarget } from '@antiphon/contracts/agent';
import type { EventStore, StreamGuard } from '@antiphon/event-store';
import { isAppError } from '@antiphon/kernel';
import type { BoundedMap, Ids } from '@antiphon/kernel';
import { requireOwnSession } from '@antiphon/agents-features';
import type { PolicyAgents } from '@antiphon/agents-features';
import { requireChatOfSession } from '../sessions/session-chat.js';
import { keyOf, readBinding } from '../sessions/session-keys.js';
import type { KeyBinding } from '../sessions/session-keys.js';
import type { LocalSession } from '../sessions/local-session.js';
import type { ClaimedSession, SessionRegistry } from '../sessions/session-registry.js';

export interface ResolveTargetDeps {
  readonly agents: PolicyAgents;
  readonly registry: SessionRegistry;
  readonly store: EventStore;
  readonly ids: Ids;
  /**
   * Cache of the bindings of keys, by workspace and key. An append that relies on one guards it.
   */
  readonly boundSessions: BoundedMap<KeyBinding>;
}

/** A session that is created with its first turn. */
export interface NewSession {
  readonly sessionId: string;
  readonly sessionKey: string;
  readonly agentId: string;
  readonly previousSessionId?: string;
  readonly binding: KeyBinding;
}

/** The session that a turn is for. */
export interface Destination extends ClaimedSession {
  /** Null for a session that exists. */
  readonly created: NewSession | null;
  /** Stream that must not have changed: of the remembered key, or of the chat. Null for none. */
  readonly guard: StreamGuard | null;
  /** True for the first attempt, which may rely on what this process remembers. */
  readonly mayUseCache: boolean;
}

/**
 * Returns null for an archived session. Its address gets a new session, and memory stays with the
 * address.
 */
const ignoreArchived = <T>(existing: Promise<T>): Promise<T | null> =>
  existing.catch((error: unknown) => {
    if (isAppError(error) && error.code === 'LOG.ARCHIVED') return null;
    throw error;
  });

const cacheKey = (workspace: string, sessionKey: string): string => `${workspace} ${sessionKey}`;

type TargetRequest = Parameters<typeof requireOwnSession>[1] & {
  readonly workspace: string;
  readonly target: SessionTarget;
};

/** Finds the session of a turn, or prepares a new one. */
export class TargetResolver {
  constructor(private readonly deps: ResolveTargetDeps) {}

  /** Returns the session of the target, or a new one for an address without a session. */
  async resolve(request: TargetRequest, mayUseCache: boolean): Promise<Destination> {
    const { workspace, target } = request;
    const { registry, agents, store, boundSessions, ids } = this.deps;
    if ('sessionId' in target) {
      const existing = await registry.requireSession(workspace, target.sessionId);
      const { agentId = '', sessionKey = '' } = existing.actor.fold().state.started ?? {};
      await requireOwnSession(agents, request, (await agents.require(workspace, agentId)).id);
      const guard = await requireChatOfSession(store, workspace, sessionKey);
      return { ...existing, created: null, guard, mayUseCache };
    }
    const agentId = (await agents.require(workspace, target.address.agentId)).id;
    await requireOwnSession(agents, request, agentId);
    const sessionKey = keyOf(target.address);
    const known = mayUseCache ? boundSessions.get(cacheKey(workspace, sessionKey)) : undefined;
    const binding = known ?? (await readBinding(store, workspace, sessionKey));
    const { streamId, version, sessionId: boundId } = binding;
    if (boundId !== null) {
      boundSessions.put(cacheKey(workspace, sessionKey), binding);
      const existing = await ignoreArchived(registry.requireSession(workspace, boundId));
      const guard = known ? { streamId, version } : null;
      if (existing) return { ...existing, created: null, guard, mayUseCache };
    }
    const sessionId = ids.next();
    const session = await registry.create(workspace, sessionId, mayUseCache);
    const previous = boundId === null ? {} : { previousSessionId: boundId };
    const created = { sessionId, sessionKey, agentId, binding, ...previous };
    return { ...session, created, guard: null, mayUseCache };
  }

  /** Returns the session of an address as this process remembers it, if it is in the cache. */
  findCached(workspace: string, address: SessionAddress): LocalSession | null {
    const { boundSessions, registry } = this.deps;
    const { sessionId } = boundSessions.get(cacheKey(workspace, keyOf(address))) ?? {};
    const session = sessionId ? registry.find(workspace, sessionId) : undefined;
    return session?.actor.known() ? session : null;
  }

  /** Remembers the binding of a session that was created. */
  remember(workspace: string, { created }: Destination): void {
    if (!created) return;
    const { sessionKey, sessionId, binding } = created;
    const bound = { streamId: binding.streamId, version: binding.version + 1, sessionId };
    this.deps.boundSessions.put(cacheKey(workspace, sessionKey), bound);
  }

  /** Removes a session that was not created in the end. */
  async discard({ created, actor }: Destination): Promise<void> {
    if (created) await this.deps.registry.discard(actor.workspace, actor.sessionId);
  }
}
