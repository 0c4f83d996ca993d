import { withMessage } from '@antiphon/contracts/causes';
import { SessionEvent } from '@antiphon/contracts/agent';
import { upcast } from '@antiphon/contracts/events';
import type { SessionExport } from '@antiphon/contracts/log';
import { replaySession } from '@antiphon/conversation-domain';
import type { ReplayNames, ReplayOverrides, ReplayedEvent } from '@antiphon/conversation-domain';
import { canonicalJson, genesisHash, hashEvent } from '@antiphon/event-store';
import type { RecordedEvent } from '@antiphon/event-store';
import { invalid, notFound } from '@antiphon/kernel';
import type { JsonObject } from '@antiphon/kernel';
import { callIdOf, toolDigestOf } from '@antiphon/agent-log';

/**
 * One side of a comparison: an event and its actual or hypothetical hash at its place in the chain.
 */
export interface ReplaySide {
  readonly type: string;
  readonly data: JsonObject;
  /** Hex. */
  readonly hash: string;
}

/** A difference between the record and the rules. */
export interface Divergence {
  /** `content`: the rules produce another event or none. `hash`: the record was changed. */
  readonly why: 'content' | 'hash';
  readonly streamVersion: number;
  readonly eventId: string;
  readonly turnId: string | null;
  readonly recorded: ReplaySide;
  /** Null if the rules produce no event here. */
  readonly produced: ReplaySide | null;
  readonly message: string;
}

export interface ReplayReport {
  readonly ok: boolean;
  readonly sessionId: string;
  /** The compared turn; null for all turns. */
  readonly turnId: string | null;
  readonly events: number;
  /** Number of compared events that are inputs, and of those that are decisions. */
  readonly inputs: number;
  readonly decisions: number;
  readonly turns: number;
  /** Always 0: a replay has no access to providers or tools. */
  readonly providerCalls: 0;
  readonly toolCalls: 0;
  /** Hash of the last recorded event. */
  readonly head: string;
  readonly divergences: readonly Divergence[];
}

export interface ReplayOptions {
  /** Limits the comparison to this turn. */
  readonly turnId?: string;
  readonly rules?: ReplayOverrides;
  /** Maximum number of reported divergences. */
  readonly limit: number;
}

const textOf = ({ type, schemaVersion, data }: SessionEvent): string =>
  canonicalJson({ type, schemaVersion, data: data as unknown as JsonObject });

const NAMES: ReplayNames = { callIdOf, toolDigestOf, isSame: (a, b) => textOf(a) === textOf(b) };

const parse = (recorded: RecordedEvent): SessionEvent => {
  const { type, schemaVersion, data, streamVersion } = upcast(recorded);
  const parsed = SessionEvent.safeParse({ type, schemaVersion, data });
  if (parsed.success) return { type, schemaVersion, data } as unknown as SessionEvent;
  throw invalid(
    'REPLAY.EVENT_UNKNOWN',
    `this version does not know event ${streamVersion}, ${type} in its form ${schemaVersion}. What to do: replay it with the version that wrote it, or a later one`,
  );
};

const turnOf = ({ data }: SessionEvent): string | null => ('turnId' in data ? data.turnId : null);

type Content = Pick<RecordedEvent, 'type' | 'schemaVersion' | 'data'>;

/** Returns the hash of this content in the place of a recorded event. */
const hashAt = (previous: string, at: RecordedEvent, event: Content): string =>
  hashEvent(Buffer.from(previous, 'hex'), {
    ...{ streamId: at.streamId, streamVersion: at.streamVersion, eventId: at.eventId },
    ...{ type: event.type, schemaVersion: event.schemaVersion },
    data: canonicalJson(event.data),
    metadata: canonicalJson(at.metadata as JsonObject),
  }).toString('hex');

const sideOf = (event: SessionEvent, hash: string): ReplaySide => ({
  type: event.type,
  data: withMessage(event.data) as unknown as JsonObject,
  hash,
});

/** Returns the difference at one event, or null. `previous` is the hash before it. */
const compare = (at: RecordedEvent, previous: string, replayed: ReplayedEvent): Divergence | null => {
  const { recorded, produced, kind } = replayed;
  const isContent = !produced || textOf(produced) !== textOf(recorded);
  // The hash covers the recorded form, which may be older than the form the rules produce.
  const content = isContent ? (produced as Content | null) : at;
  const hash = content && hashAt(previous, at, content);
  if (hash === at.hash) return null;
  const instead = produced ? `the rules give ${produced.type}` : 'the rules add no event here';
  const said = isContent
    ? `${kind === 'input' ? 'what was recorded from outside' : 'the recorded decision'} is ${recorded.type}; ${instead}`
    : `the record of ${recorded.type} is not what was appended: its content does not have its hash`;
  return {
    why: isContent ? 'content' : 'hash',
    ...{ streamVersion: at.streamVersion, eventId: at.eventId, turnId: turnOf(recorded) },
    recorded: sideOf(recorded, at.hash),
    produced: produced && sideOf(produced, hash ?? ''),
    message: `event ${at.streamVersion} (${at.eventId}): ${said}`,
  };
};

/** Throws `REPLAY.NOT_WHOLE` unless the export has all events of one session, in order. */
const requireComplete = ({ events, head, sessionId }: SessionExport): void => {
  const bad = events.find(
    ({ streamVersion, streamId }, index) =>
      streamVersion !== index + 1 || streamId !== `session-${sessionId}`,
  );
  const last = events.at(-1);
  if (!bad && last && last.streamVersion === head.version && last.hash === head.hash) return;
  const what = bad
    ? `event ${bad.streamVersion} of ${bad.streamId} is out of place`
    : `it says that it has ${head.version} events up to ${head.hash.slice(0, 12)}…, and ends otherwise`;
  throw invalid('REPLAY.NOT_WHOLE', `this is not a whole session: ${what}. What to do: export it again`);
};

/**
 * Replays a recorded session by the rules of this version. Pure: uses no provider, tool, clock or
 * store. Throws `REPLAY.NOT_WHOLE`, `REPLAY.EVENT_UNKNOWN` (invalid), `REPLAY.TURN_NOT_FOUND` (not
 * found).
 */
export const replayRecord = (record: SessionExport, options: ReplayOptions): ReplayReport => {
  const { turnId = null, rules = {}, limit } = options;
  requireComplete(record);
  const events = record.events as readonly RecordedEvent[];
  const parsed = events.map(parse);
  if (turnId !== null && !parsed.some((event) => turnOf(event) === turnId))
    throw notFound('REPLAY.TURN_NOT_FOUND', `the session ${record.sessionId} has no turn ${turnId}`);
  const counts = { input: 0, decision: 0 };
  const divergences: Divergence[] = [];
  let previous = genesisHash(record.workspace).toString('hex');
  let index = 0;
  for (const replayed of replaySession(parsed, NAMES, rules)) {
    const at = events[index++] as RecordedEvent;
    const isWanted = turnId === null || turnOf(replayed.recorded) === turnId;
    const divergence = isWanted ? compare(at, previous, replayed) : null;
    if (isWanted) counts[replayed.kind]++;
    if (divergence) divergences.push(divergence);
    if (divergences.length >= limit) break;
    previous = at.hash;
  }
  return {
    ...{ ok: divergences.length === 0, sessionId: record.sessionId, turnId, events: events.length },
    ...{ inputs: counts.input, decisions: counts.decision },
    turns: parsed.filter(({ type }) => type === 'TurnRequested').length,
    ...{ providerCalls: 0, toolCalls: 0, head: record.head.hash, divergences },
  };
};
