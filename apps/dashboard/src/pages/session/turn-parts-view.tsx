import type { Turn } from '../../data/transcript.js';
import { partsOf, textLengthOf, type Part, type ToolPart } from '../../data/turn-parts.js';
import { requestedDiff } from '../../data/requested-diff.js';
import { ApprovalCard } from '../../ui/approval-card.js';
import { Diff } from '../../ui/diff.js';
import { formatDuration } from '../../ui/format.js';
import { Icon } from '../../ui/icon.js';
import { Code, isLongText, Json } from '../../ui/json.js';
import { Markdown } from '../../ui/markdown.js';
import { State } from '../../ui/ui.js';
import { directionOf } from '../../ui/text-direction.js';
import { VisibleText } from '../../ui/visible-text.js';
import css from './session.module.css';

const inputPreview = (input: unknown): string => {
  const text = JSON.stringify(input) ?? '';
  return text.length > 120 ? `${text.slice(0, 120)}… (${text.length} characters)` : text;
};

/** Shows the arguments that an approver gave a call in the place of the requested ones. */
const EditedArguments = ({ name, approval }: Pick<ToolPart, 'name' | 'approval'>) =>
  approval?.edited ? (
    <>
      <p className={css.small}>
        <VisibleText text={approval.answeredBy ?? ''} /> changed the arguments to:
      </p>
      <Json value={approval.edited.input} label={`Arguments of ${name} as approved`} />
    </>
  ) : null;

/** Shows a tool call: its arguments, its result, and the approval that it waits for. */
export const Tool = ({ part }: { readonly part: ToolPart }) => {
  const { name, input, output, status, durationMs, approval, callId } = part;
  if (approval?.status === 'pending') return <ApprovalCard approval={{ ...approval, tool: name, input }} />;
  const diff = approval?.preview ?? requestedDiff(name, input);
  return (
    <details className={css.tool} data-call={callId}>
      <summary>
        <Icon name="tool" />
        <span className={css.toolName}>
          <VisibleText text={name} />
        </span>
        <span className={css.toolInput}>
          <VisibleText text={inputPreview(input)} />
        </span>
        {approval && <State of={approval.status} />}
        {approval?.answeredBy && (
          <span className={css.small}>
            by <VisibleText text={approval.answeredBy} />
          </span>
        )}
        <State of={status} />
        {durationMs !== null && <span className={css.small}>{formatDuration(durationMs)}</span>}
      </summary>
      <div className={css.toolBody}>
        {diff && <Diff text={diff} label={`Changes by ${name}`} />}
        <Json value={input} label={`Arguments of ${name}`} />
        <EditedArguments name={name} approval={approval} />
        {approval?.answeredBy && (
          <p className={css.small}>
            {approval.status} by {approval.answeredBy}
            {approval.reason && (
              <>
                : <VisibleText text={approval.reason} />
              </>
            )}
          </p>
        )}
        {output !== null && <Code text={output} label={`Result of ${name}`} />}
      </div>
    </details>
  );
};

export interface PartProps {
  readonly part: Part;
  /** True for a text whose model call is open. */
  readonly isGrowing?: boolean;
}

/** Shows a part of an answer. */
export const PartView = ({ part, isGrowing = false }: PartProps) => {
  if (part.kind === 'tool') return <Tool part={part} />;
  if (part.kind === 'note')
    return (
      <p className={css.note} data-bad={part.isBad ? '' : undefined}>
        <Icon name={part.isBad ? 'warning' : 'dot'} size={14} />
        <VisibleText text={part.text} />
      </p>
    );
  return (
    <>
      {part.thought !== '' && (
        <details className={css.thought}>
          <summary>Reasoning</summary>
          <Markdown text={part.thought} />
        </details>
      )}
      {part.text !== '' && <Markdown text={part.text} isGrowing={isGrowing} />}
    </>
  );
};

/**
 * Returns the parts of a turn with keys. The text of an open model call has the key of the part
 * that its end adds, so that its elements stay.
 */
export const keyedParts = (turn: Turn, live: string): readonly (PartProps & { readonly key: string })[] => {
  const tail = turn.endedAt === null ? live.slice(textLengthOf(turn)) : '';
  const open: Part = { kind: 'text', key: 'open', text: tail, thought: '' };
  let texts = 0;
  return [...partsOf(turn), ...(tail === '' ? [] : [open])].map((part) => ({
    part,
    key: part.kind === 'text' ? `text ${texts++}` : part.key,
    isGrowing: part === open,
  }));
};

/** Shows the text of a message. */
export const MessageText = ({ message }: Pick<Turn, 'message'>) =>
  message.isDeleted ? (
    <p className={css.small}>This message was deleted.</p>
  ) : isLongText(message.text) ? (
    <div className={css.said}>
      <Code text={message.text} label="Long text of the message" />
    </div>
  ) : (
    <p dir={directionOf(message.text)}>
      <VisibleText text={message.text} />
    </p>
  );
