import { fieldsOf, textOf } from './socket-protocol.js';
import type { SocketAction, SocketProtocol } from './socket-protocol.js';

const formOf = (payload: Readonly<Record<string, unknown>>): string => {
  const form = new URLSearchParams();
  for (const [name, value] of Object.entries(payload)) if (typeof value === 'string') form.set(name, value);
  return form.toString();
};

/**
 * Socket mode of Slack. An envelope is acknowledged once its message is in the log: Slack sends one
 * without an acknowledgement again.
 */
export class SlackSocket implements SocketProtocol {
  read(frame: unknown): readonly SocketAction[] {
    const { type, envelope_id: id, payload } = fieldsOf(frame);
    if (type === 'hello') return [{ kind: 'ready' }];
    if (type === 'disconnect') return [{ kind: 'close', reason: 'the platform asks for it', afterMs: 0 }];
    if (textOf(id) === '') return [];
    const isCommand = type === 'slash_commands';
    const delivery = {
      body: isCommand ? formOf(fieldsOf(payload)) : JSON.stringify(payload ?? {}),
      contentType: isCommand ? 'application/x-www-form-urlencoded' : 'application/json',
      ...{ ack: JSON.stringify({ envelope_id: id }), interaction: null, seq: null },
    };
    return [{ kind: 'deliver', delivery }];
  }

  beat(): readonly SocketAction[] {
    return [];
  }

  taken(): null {
    return null;
  }

  ended(): { readonly isFatal: boolean; readonly isSessionLost: boolean } {
    return { isFatal: false, isSessionLost: false };
  }
}
