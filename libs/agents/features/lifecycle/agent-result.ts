import { sessionStream } from '@antiphon/contracts/agent';
import type { AgentResult } from '@antiphon/contracts/agent';

import { readBackwards } from '@antiphon/event-store';
import type { EventStore } from '@antiphon/event-store';
import { clipText, isAppError } from '@antiphon/kernel';
import type { AgentRow } from './agent-rows.js';

const PAGE = 100;
/** Maximum length of a result's text, UTF-16 units. */
const MAX_TEXT = 65_000;

const readAnswer = async (
  store: EventStore,
  workspace: string,
  sessionId: string,
  turnId: string,
): Promise<string> => {
  for await (const { type, data } of readBackwards(store, workspace, sessionStream(sessionId), PAGE))
    if (type === 'ModelCallCompleted' && data['turnId'] === turnId) return String(data['text'] ?? '');
  return '';
};

/**
 * Returns what an agent has finished: the answer of its newest completed turn, `partial` while
 * another turn is open. Null if it has completed none.
 */
export const readResult = async (
  store: EventStore,
  workspace: string,
  { lastSessionId: sessionId, lastTurnId: turnId, openTurns }: AgentRow,
): Promise<AgentResult | null> => {
  if (sessionId === null || turnId === null) return null;
  try {
    const text = clipText(await readAnswer(store, workspace, sessionId, turnId), MAX_TEXT);
    return { status: openTurns > 0 ? 'partial' : 'completed', text, sessionId, turnId, code: null };
  } catch (error) {
    // The answer is in an archive.
    if (!isAppError(error) || error.code !== 'LOG.ARCHIVED') throw error;
    return { status: 'completed', text: '', sessionId, turnId, code: null };
  }
};
