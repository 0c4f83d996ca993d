import { agentInboxStream } from '@antiphon/contracts/agent';
import type { AgentMessage, AgentResult } from '@antiphon/contracts/agent';

import type { StreamAppend } from '@antiphon/event-store';
import type { JsonObject } from '@antiphon/kernel';
import { clipText } from '@antiphon/kernel';
import { agentUuidOf, endMessageIdOf, eventMetadata } from '@antiphon/agent-log';

/** Length of a result in a message, UTF-16 units. The whole is in the child's own history. */
const MAX_TEXT = 15_000;

interface Ended {
  readonly workspace: string;
  /** Agent that has to know. */
  readonly parentId: string;
  readonly result: AgentResult | null;
  /** Id of the event that ended the child or the task. */
  readonly causeId: string;
  readonly at: string;
}

const resultOf = ({ result }: Ended): { status: string; text: string; code: string | null } => ({
  status: result?.status ?? 'cancelled',
  text: clipText(result?.text ?? '', MAX_TEXT),
  code: result?.code ?? null,
});

const endAppend = (
  { workspace, parentId, causeId, at }: Ended,
  { messageId, type, from, content }: Pick<AgentMessage, 'messageId' | 'type' | 'from' | 'content'>,
): StreamAppend => {
  const to = { kind: 'agent', agentId: parentId } as const;
  const message: AgentMessage = { messageId, type, from, to, content, causeId, sentAt: at };
  const data = message as unknown as JsonObject;
  const event = { eventId: messageId, type: 'AgentMessageSent', schemaVersion: 1, data };
  return {
    streamId: agentInboxStream(agentUuidOf(workspace, parentId)),
    expectedVersion: 'any',
    events: [{ ...event, metadata: eventMetadata() }],
  };
};

/**
 * Returns the append that tells a parent of its child's end. It belongs into the append of
 * `AgentTerminated`. The id of its event is derived from the child, so that there is one at most.
 */
export const childEndedAppend = (ended: Ended & { readonly childId: string }): StreamAppend =>
  endAppend(ended, {
    messageId: endMessageIdOf(ended.workspace, 'child', ended.childId),
    type: 'ChildEnded',
    from: `agent/${ended.childId}`,
    content: { agentId: ended.childId, ...resultOf(ended) },
  });

/**
 * Returns the append that tells an agent of the end of a task that it delegated. It belongs into
 * the append of `TaskEnded`. The id of its event is derived from the task.
 */
export const taskEndedAppend = (ended: Ended & { readonly taskId: string }): StreamAppend =>
  endAppend(ended, {
    messageId: endMessageIdOf(ended.workspace, 'task', ended.taskId),
    type: 'TaskEnded',
    from: `task/${ended.taskId}`,
    content: { taskId: ended.taskId, ...resultOf(ended) },
  });
