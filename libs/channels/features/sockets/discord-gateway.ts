import { fieldsOf, textOf } from './socket-protocol.js';
import type { SocketAction, SocketDelivery, SocketProtocol, SocketSession } from './socket-protocol.js';

const OP = {
  dispatch: 0,
  heartbeat: 1,
  identify: 2,
  resume: 6,
  reconnect: 7,
  invalid: 9,
  hello: 10,
  ack: 11,
};
/** Messages of guilds and of direct messages, with their texts. */
const INTENTS = (1 << 9) | (1 << 12) | (1 << 15);
/** Codes after which another try cannot succeed before an operator changes something. */
const FATAL = new Set([4004, 4010, 4011, 4012, 4013, 4014]);
const SESSION_LOST = new Set([1000, 1001, 4007, 4009]);
/** Discord takes one identify in five seconds. */
const IDENTIFY_AFTER_MS = 5_000;
const MIN_BEAT_MS = 100;

const frame = (op: number, d: unknown): SocketAction => ({ kind: 'send', frame: JSON.stringify({ op, d }) });
const close = (reason: string, afterMs = 0): SocketAction => ({ kind: 'close', reason, afterMs });

/** Gateway of Discord: heartbeats, and sessions that are resumed after the last taken message. */
export class DiscordGateway implements SocketProtocol {
  /** Id of the bot, which only the first message of a session tells. */
  private self: string;
  private id: string;
  private url: string;
  /** Number of the last dispatch that came, and of the last one that was taken. */
  private seq: number | null;
  private takenSeq: number;
  private isAcked = true;

  /** `session` is null for a connection that identifies. */
  constructor(
    private readonly token: string,
    private readonly session: SocketSession | null,
  ) {
    this.id = session?.id ?? '';
    this.url = session?.url ?? '';
    this.self = session?.self ?? '';
    this.seq = session?.seq ?? null;
    this.takenSeq = session?.seq ?? 0;
  }

  read(value: unknown): readonly SocketAction[] {
    const { op, d, s, t } = fieldsOf(value);
    switch (op) {
      case OP.hello:
        return this.begin(Number(fieldsOf(d)['heartbeat_interval']));
      case OP.heartbeat:
        return [frame(OP.heartbeat, this.seq)];
      case OP.ack:
        this.isAcked = true;
        return [];
      case OP.reconnect:
        return [close('the platform asks for it')];
      case OP.invalid:
        return d === true ? [close('try to resume again', 1_000)] : this.forget();
      case OP.dispatch:
        if (typeof s === 'number') this.seq = s;
        return this.dispatch(textOf(t), fieldsOf(d), typeof s === 'number' ? s : null);
      default:
        return [];
    }
  }

  beat(): readonly SocketAction[] {
    if (!this.isAcked) return [close('no acknowledgement of a heartbeat')];
    this.isAcked = false;
    return [frame(OP.heartbeat, this.seq)];
  }

  taken({ seq }: SocketDelivery): SocketSession | null {
    if (seq !== null) this.takenSeq = Math.max(this.takenSeq, seq);
    return this.id === '' ? null : { id: this.id, seq: this.takenSeq, url: this.url, self: this.self };
  }

  ended(code: number): { readonly isFatal: boolean; readonly isSessionLost: boolean } {
    return { isFatal: FATAL.has(code), isSessionLost: this.id === '' || SESSION_LOST.has(code) };
  }

  private begin(everyMs: number): readonly SocketAction[] {
    if (!Number.isFinite(everyMs) || everyMs < MIN_BEAT_MS) return [close('no interval of heartbeats')];
    const { token, session } = this;
    const first =
      session === null
        ? frame(OP.identify, {
            ...{ token, intents: INTENTS },
            properties: { os: 'linux', browser: 'antiphon', device: 'antiphon' },
          })
        : frame(OP.resume, { token, session_id: session.id, seq: session.seq });
    return [{ kind: 'heartbeat', everyMs }, first];
  }

  /** The session cannot be resumed. */
  private forget(): readonly SocketAction[] {
    this.id = '';
    return [close('the session is not valid', IDENTIFY_AFTER_MS)];
  }

  private dispatch(
    type: string,
    data: Readonly<Record<string, unknown>>,
    seq: number | null,
  ): SocketAction[] {
    if (type === 'READY') {
      this.id = textOf(data['session_id']);
      this.url = textOf(data['resume_gateway_url']);
      this.self = textOf(fieldsOf(data['user'])['id']);
      return [{ kind: 'ready' }];
    }
    if (type === 'RESUMED') return [{ kind: 'ready' }];
    const common = { contentType: 'application/json', ack: null, seq };
    if (type === 'MESSAGE_CREATE') {
      const body = JSON.stringify({ type: 'MESSAGE_CREATE', self: this.self, message: data });
      return [{ kind: 'deliver', delivery: { ...common, body, interaction: null } }];
    }
    if (type !== 'INTERACTION_CREATE') return [];
    const interaction = { id: textOf(data['id']), token: textOf(data['token']) };
    return [{ kind: 'deliver', delivery: { ...common, body: JSON.stringify(data), interaction } }];
  }
}
