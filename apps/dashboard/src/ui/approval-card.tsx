import { useCallback, useEffect, useRef, useState, type RefObject } from 'react';
import { flushSync } from 'react-dom';
import { useAct, useRefusal } from '../data/act.js';
import { hasDecided } from '../data/decisions.js';
import { client } from '../data/gateway.js';
import { ActButton } from './act-button.js';
import { EditArguments } from './edit-arguments.js';
import { CopyRecord } from './copy-record.js';
import { Diff } from './diff.js';
import { countOf, formatDate } from './format.js';
import { Json, printJson } from './json.js';
import { VisibleText } from './visible-text.js';
import { css as ui, ProblemBox, State } from './ui.js';
import css from './approval-card.module.css';

/** A request for a decision, from the list of approvals or from the log of a session. */
export interface AskedApproval {
  readonly id: string;
  readonly tool: string;
  readonly input: unknown;
  readonly digest: string;
  readonly answerBy: string;
  readonly status: string;
  readonly expiresAt: string;
  readonly answeredBy: string | null;
  readonly reason: string | null;
  readonly grants?: readonly string[];
  /** Unified diff of the files that the call would change. */
  readonly preview?: string | null;
  /** Arguments that the approver gave the call, and their digest. */
  readonly edited?: { readonly input: unknown; readonly digest: string } | null | undefined;
}

/** Time after its appearance in which a card takes no click, so that none lands on it by accident. */
const SETTLE_MS = 500;

const useSettled = (id: string): boolean => {
  const [settled, setSettled] = useState<string | null>(null);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(id), SETTLE_MS);
    return () => clearTimeout(timer);
  }, [id]);
  return settled === id;
};

const SAMPLE_MS = 100;
const MOVED_PX = 4;

/**
 * Returns a function that tells whether the card has moved on the page a moment ago. A click that
 * was meant for another place then decides nothing.
 */
const useMoved = (card: RefObject<HTMLElement | null>): (() => boolean) => {
  const last = useRef({ top: Number.POSITIVE_INFINITY, at: 0 });
  const measure = useCallback((): void => {
    if (!card.current) return;
    const top = card.current.getBoundingClientRect().top + scrollY;
    if (Math.abs(top - last.current.top) > MOVED_PX) last.current = { top, at: performance.now() };
  }, [card]);
  useEffect(() => {
    measure();
    const timer = setInterval(measure, SAMPLE_MS);
    return () => clearInterval(timer);
  }, [measure]);
  return () => {
    measure();
    return performance.now() - last.current.at < SETTLE_MS;
  };
};

type Decision = Pick<Parameters<typeof client.approvals.answer>[0], 'decision' | 'input'>;

interface ButtonsProps {
  readonly isOff: boolean;
  readonly isEditing: boolean;
  readonly changeButton: RefObject<HTMLSpanElement | null>;
  readonly answer: (decision: 'approve' | 'deny') => () => void;
  readonly edit: () => void;
}

const Buttons = ({ isOff, isEditing, changeButton, answer, edit }: ButtonsProps) => (
  <>
    <ActButton
      permission="approvals:answer"
      look="danger"
      icon="cross"
      isOff={isOff}
      onClick={answer('deny')}
    >
      Deny
    </ActButton>
    <span ref={changeButton}>
      <ActButton permission="approvals:answer" icon="pencil" isOff={isOff || isEditing} onClick={edit}>
        Change arguments
      </ActButton>
    </span>
    <ActButton
      permission="approvals:answer"
      look="primary"
      icon="check"
      isOff={isOff}
      onClick={answer('approve')}
    >
      Approve
    </ActButton>
  </>
);

const Answer = ({ approval }: { readonly approval: AskedApproval }) => {
  const [reason, setReason] = useState('');
  const { run, isBusy, problem } = useAct();
  const isSettled = useSettled(approval.id);
  const refusal = useRefusal('approvals:answer');
  const { id: approvalId, digest } = approval;
  const box = useRef<HTMLDivElement>(null);
  const hasMoved = useMoved(box);
  const [isRefused, setRefused] = useState(false);
  const [isEditing, setEditing] = useState(false);
  const changeButton = useRef<HTMLSpanElement>(null);
  const send = async (decision: Decision): Promise<void> => {
    await client.approvals.answer({ approvalId, reason, digest, ...decision });
    hasDecided.set(true);
  };
  const answer = (decision: 'approve' | 'deny') => (): void => {
    const isTooSoon = hasMoved();
    setRefused(isTooSoon);
    if (!isTooSoon) run(() => send({ decision }));
  };
  const isOff = isBusy || !isSettled;
  return (
    <>
      {problem && <ProblemBox problem={problem} />}
      {isRefused && <p role="alert">This card has just moved, so nothing was decided. Press again.</p>}
      <div ref={box} className={css.answer}>
        <input
          className={ui.input}
          aria-label={`Reason of the decision about ${approval.tool}`}
          placeholder="Reason (a denial gives it to the model)"
          maxLength={2_000}
          value={reason}
          disabled={refusal !== null}
          onChange={(event) => setReason(event.target.value)}
        />
        <Buttons {...{ isOff, isEditing, changeButton, answer }} edit={() => setEditing(true)} />
      </div>
      {isEditing && (
        <EditArguments
          {...{ approvalId, run, isOff, tool: approval.tool, input: approval.input }}
          approve={(input) => send({ decision: 'approve', input })}
          close={() => {
            flushSync(() => setEditing(false));
            // The focus goes back to the button, which is off while the text is open.
            changeButton.current?.querySelector<HTMLElement>('button')?.focus();
          }}
        />
      )}
    </>
  );
};

/** Says how much there is to read, so that no part is missed. */
const sizeOf = (input: unknown): string => {
  const isObject = input !== null && typeof input === 'object';
  const fields = isObject ? `${countOf(Object.keys(input).length, 'argument')}, ` : '';
  return `${fields}${countOf(printJson(input).length, 'character')}`;
};

/** Shows exactly what a decision binds, and takes the decision. */
export const ApprovalCard = ({ approval }: { readonly approval: AskedApproval }) => {
  const {
    tool,
    input,
    digest,
    status,
    answerBy,
    expiresAt,
    answeredBy,
    reason,
    grants = [],
    preview,
    edited,
  } = approval;
  return (
    <div className={css.card} data-status={status}>
      <div className={css.head}>
        <strong>
          <VisibleText text={tool} />
        </strong>
        <State of={status} />
        <span className={ui.muted}>
          {status === 'pending' ? `${answerBy} or above may answer · expires ${formatDate(expiresAt)}` : null}
          {answeredBy && `by ${answeredBy}`}
        </span>
      </div>
      {preview && <Diff text={preview} label={`Changes by ${tool}`} isWhole />}
      <Json value={input} label={`All arguments of ${tool}`} isWhole />
      <p className={ui.muted}>{sizeOf(input)}</p>
      {edited && <Json value={edited.input} label={`Arguments of ${tool} as approved`} isWhole />}
      {grants.length > 0 && <p>The tool may use: {grants.join(', ')}</p>}
      {reason && (
        <p>
          Reason: <VisibleText text={reason} />
        </p>
      )}
      <p className={css.digest}>
        digest of these arguments <code>{digest}</code>
      </p>
      {status === 'pending' && <Answer approval={approval} />}
      <div>
        <CopyRecord
          noun="approval"
          page={`/approvals?status=all&id=${approval.id}`}
          json={`/approvals/${approval.id}`}
          command={`antiphon approvals show ${approval.id}`}
        />
      </div>
    </div>
  );
};
