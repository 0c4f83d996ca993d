import { SessionEvent } from '@antiphon/contracts/agent';
import { upcast } from '@antiphon/contracts/events';
import type { SessionExport } from '@antiphon/contracts/log';
import { replaySession } from '@antiphon/agent-domain';
import type { ReplayNames, ReplayOverrides, ReplayedEvent } from '@antiphon/agent-domain';
import { canonicalJson, genesisHash, hashEvent } from '@antiphon/event-store';
import type { RecordedEvent } from '@antiphon/event-store';
import { invalid, notFound } from '@antiphon/kernel';
import type { JsonObject } from '@antiphon/kernel';
import { callIdOf, toolDigestOf } from '../derived-ids.js';

/** One side of a comparison: an event, and the hash that it has, or would have, at its place in the chain. */
export interface ReplaySide {
  readonly type: string;
  readonly data: JsonObject;
  /** Hex. */
  readonly hash: string;
}

/** Where record and rules part. */
export interface Divergence {
  /** `content`: the rules give something else, or nothing, here. `hash`: the record is not what was appended. */
  readonly why: 'content' | 'hash';
  readonly streamVersion: number;
  readonly eventId: string;
  readonly turnId: string | null;
  readonly recorded: ReplaySide;
  /** Null where the rules add no event here. */
  readonly produced: ReplaySide | null;
  readonly message: string;
}

export interface ReplayReport {
  readonly ok: boolean;
  readonly sessionId: string;
  /** The turn that was compared; null for all of them. */
  readonly turnId: string | null;
  readonly events: number;
  /** Compared events: what came from outside, and what was decided from it. */
  readonly inputs: number;
  readonly decisions: number;
  readonly turns: number;
  /** None, by construction: a replay has no door to either. */
  readonly providerCalls: 0;
  readonly toolCalls: 0;
  /** The end of the chain that both sides share. */
  readonly head: string;
  readonly divergences: readonly Divergence[];
}

export interface ReplayOptions {
  /** Compares this turn's events alone. */
  readonly turnId?: string;
  readonly rules?: ReplayOverrides;
  /** Divergences named at most. */
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

/** The hash that this content would have in the place of a recorded event. */
const hashAt = (previous: string, at: RecordedEvent, event: Content): string =>
  hashEvent(Buffer.from(previous, 'hex'), {
    ...{ streamId: at.streamId, streamVersion: at.streamVersion, eventId: at.eventId },
    ...{ type: event.type, schemaVersion: event.schemaVersion },
    data: canonicalJson(event.data),
    metadata: canonicalJson(at.metadata as JsonObject),
  }).toString('hex');

const sideOf = (event: SessionEvent, hash: string): ReplaySide => ({
  type: event.type,
  data: event.data as unknown as JsonObject,
  hash,
});

/** The difference at one event, if there is one. `previous`: the hash before it. */
const compare = (at: RecordedEvent, previous: string, replayed: ReplayedEvent): Divergence | null => {
  const { recorded, produced, kind } = replayed;
  const isContent = !produced || textOf(produced) !== textOf(recorded);
  // What is hashed is the form that was written, which may be an older one than what the rules give.
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

/** The chain's own rules: order, streams, categories. What is out of place cannot be replayed. */
const requireOrder = ({ events, head, sessionId }: SessionExport): void => {
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
 * Replays a recorded session by the rules of this version. Pure: no provider, tool, clock or store is within reach.
 * Throws `REPLAY.NOT_WHOLE`, `REPLAY.EVENT_UNKNOWN` (invalid), `REPLAY.TURN_NOT_FOUND` (not found).
 */
export const replayRecord = (record: SessionExport, options: ReplayOptions): ReplayReport => {
  const { turnId = null, rules = {}, limit } = options;
  requireOrder(record);
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
