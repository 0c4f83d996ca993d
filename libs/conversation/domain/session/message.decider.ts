import type { SessionEvent } from '@antiphon/contracts/agent';
import type { ForwardAnswer, ReceiveMessages, ReturnAnswer, SessionCommand } from './session-command.js';
import type { OpenTurn, SessionState } from './session-state.js';

/** Command that concerns messages of other agents, or an answer that one of them gave or gets. */
export type MessageCommand = ReceiveMessages | ForwardAnswer | ReturnAnswer;

const TYPES: ReadonlySet<string> = new Set(['ReceiveMessages', 'ForwardAnswer', 'ReturnAnswer']);

export const isMessageCommand = (command: SessionCommand): command is MessageCommand =>
  TYPES.has(command.type);

const schemaVersion = 1;

const openTurn = (state: SessionState, turnId: string): OpenTurn | null =>
  state.open?.turnId === turnId ? state.open : null;

const receiveMessages = ({ data, now }: ReceiveMessages, state: SessionState): SessionEvent[] => {
  const turn = openTurn(state, data.turnId);
  // A model call that has begun does not see them, and a turn that ends reads none.
  if (!turn || turn.call || turn.cancelRequested) return [];
  return [{ type: 'MessagesReceived', schemaVersion, data: { ...data, receivedAt: now } }];
};

const forwardAnswer = ({ data, now }: ForwardAnswer, state: SessionState): SessionEvent[] => {
  if (!openTurn(state, data.turnId)) return [];
  return [{ type: 'AnswerForwarded', schemaVersion, data: { ...data, forwardedAt: now } }];
};

/** Once a turn, and only an answer: a step without tool calls. */
const returnAnswer = ({ data, now }: ReturnAnswer, state: SessionState): SessionEvent[] => {
  const turn = openTurn(state, data.turnId);
  if (!turn || turn.returned || turn.call || turn.steps.at(-1)?.calls.length !== 0) return [];
  return [{ type: 'AnswerReturned', schemaVersion: 2, data: { ...data, returnedAt: now } }];
};

/** Decides a command about messages between agents. A stale one yields no event. */
export const decideMessage = (command: MessageCommand, state: SessionState): SessionEvent[] => {
  switch (command.type) {
    case 'ReceiveMessages':
      return receiveMessages(command, state);
    case 'ForwardAnswer':
      return forwardAnswer(command, state);
    case 'ReturnAnswer':
      return returnAnswer(command, state);
  }
};
