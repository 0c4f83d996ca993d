import { sessionStream, type Frame } from '@antiphon/contracts/agent';
import { inWorkspace } from '@antiphon/database';
import type { RecordedEvent } from '@antiphon/event-store';
import type { JsonObject } from '@antiphon/kernel';
import type { Pool } from 'pg';
import { readDeletedParts } from './deleted-parts.js';

/** Returns the turns of a session whose answers were deleted. */
export type ReadDeletedAnswers = (workspace: string, sessionId: string) => Promise<ReadonlySet<string>>;

/** Creates the reader of deleted answers. */
export const createDeletedAnswersReader =
  (pool: Pool): ReadDeletedAnswers =>
  async (workspace, sessionId) => {
    const stream = sessionStream(sessionId);
    const parts = await readDeletedParts(inWorkspace(pool, workspace), workspace, [stream]);
    const answers = (parts.get(stream) ?? []).filter(({ part }) => part === 'answer');
    return new Set(answers.map(({ turnId }) => turnId));
  };

/** Returns the turns whose answers some events delete. */
export const deletedAnswersOf = (events: readonly RecordedEvent[]): ReadonlySet<string> =>
  new Set(
    events
      .filter(({ type, data }) => type === 'ChatMessageDeleted' && data['part'] === 'answer')
      .map(({ data }) => String(data['turnId'])),
  );

type Content = (data: JsonObject) => Frame['data'];

/** Data of frames without the texts of their answer. Other kinds of frames have none. */
const HIDDEN: Partial<Record<Frame['event'], Content>> = {
  text: () => '',
  thought: () => '',
  tool_use: (data) => ({ ...data, input: {} }),
  tool_result: (data) => ({ ...data, content: '' }),
  approval: (data) => ({ ...data, input: {}, preview: '' }),
  approval_update: ({ edited: _edited, ...data }) => ({ ...data, reason: '' }),
};

const hideFrame = (frame: Frame): Frame => {
  const hide = HIDDEN[frame.event];
  return hide ? { ...frame, data: hide(frame.data as JsonObject) } : frame;
};

/**
 * Empties the frames of deleted answers. Their number and their offsets stay, so that a client
 * resumes as before.
 */
export const hideAnswers = <Step extends { readonly frames: readonly Frame[] }>(
  steps: readonly Step[],
  deleted: ReadonlySet<string>,
): readonly Step[] => {
  if (deleted.size === 0) return steps;
  return steps.map((step) => ({
    ...step,
    frames: step.frames.map((frame) => (deleted.has(frame.turnId) ? hideFrame(frame) : frame)),
  }));
};
