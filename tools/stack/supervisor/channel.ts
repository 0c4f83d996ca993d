import { z } from 'zod';
import type { FromSupervisor, ToSupervisor } from './messages.js';

/** The supervisor's side of the channel to whoever started it; without one, messages go nowhere. */
export interface Channel {
  send(message: FromSupervisor): void;
  /** Goes on alone from here. */
  close(): void;
  onMessage(listener: (message: ToSupervisor) => void): void;
  /** Whoever started us is gone without a word. */
  onLost(listener: () => void): void;
}

const ToSupervisorMessage = z.discriminatedUnion('type', [
  z.object({ type: z.literal('detach') }),
  z.object({ type: z.literal('stop'), now: z.boolean() }),
]);

/** The channel of this process, if it was started with one. */
export const processChannel = (): Channel => ({
  send: (message) => {
    if (process.connected) process.send?.(message);
  },
  close: () => {
    if (process.connected) process.disconnect();
  },
  onMessage: (listener) =>
    void process.on('message', (message) => {
      const parsed = ToSupervisorMessage.safeParse(message);
      if (parsed.success) listener(parsed.data);
    }),
  onLost: (listener) => void process.on('disconnect', listener),
});
