import type { RouteReply } from '@antiphon/client';
import { useState } from 'react';
import { client } from '../../data/gateway.js';
import { useFetched } from '../../data/use-read.js';
import { ConfirmDialog } from '../../ui/confirm-dialog.js';
import { countOf } from '../../ui/format.js';
import { css as ui, Field, Id, Loading, ProblemBox, Table } from '../../ui/ui.js';
import { VisibleText } from '../../ui/visible-text.js';
import { changesFiles } from './use-tree.js';
import css from './files.module.css';

type Plan = RouteReply<'rewindFiles'>;

const REASONS = {
  newer_change: 'keeps a newer change',
  refused: 'cannot be restored',
} as const;

const CHANGES = { restored: 'gets its text before', deleted: 'goes to the bin' } as const;

/** Files that change, and those that stay as they are with the reason. */
const PlanView = ({ files, conflicts }: Plan) => (
  <>
    {files.length === 0 ? (
      <p>No file changes.</p>
    ) : (
      <Table label="Files that change" columns={['File', 'Change']}>
        {files.map(({ path, change }) => (
          <tr key={path}>
            <td>
              <VisibleText text={path} />
            </td>
            <td>{CHANGES[change]}</td>
          </tr>
        ))}
      </Table>
    )}
    {conflicts.length > 0 && (
      <Table label="Files that stay as they are" columns={['File', 'Reason']}>
        {conflicts.map(({ path, reason, detail, version, sessionId }) => (
          <tr key={path}>
            <td>
              <VisibleText text={path} />
            </td>
            <td>
              {REASONS[reason]}: <VisibleText text={detail} />
              {version !== null && ` in version ${version}`}
              {sessionId && (
                <>
                  {' by session '}
                  <Id id={sessionId} />
                </>
              )}
            </td>
          </tr>
        ))}
      </Table>
    )}
  </>
);

/** Reads the version of a conversation before a turn, and before its first one. */
const useStarts = (sessionId: string, turnId: string) => {
  const query = { stream: `session-${sessionId}`, type: 'TurnRequested', limit: 1_000 } as const;
  const read = useFetched(`rewind ${sessionId}`, (signal) => client.http.readEvents({ query, signal }));
  const event = read.data?.events.find(
    ({ data }) => (data as { readonly turnId?: unknown }).turnId === turnId,
  );
  return { before: event ? event.streamVersion - 1 : null, isRead: read.data !== undefined };
};

interface RewindDialogProps {
  readonly sessionId: string;
  /** Turn from which on changes are taken back, unless all of them are. */
  readonly turnId: string;
  readonly onClose: () => void;
}

/**
 * Takes back what a conversation changed in files. The list of the changes is read first, and newer
 * changes of others stay. Messages stay as they are.
 */
export const RewindDialog = ({ sessionId, turnId, onClose }: RewindDialogProps) => {
  const [isAll, setAll] = useState(false);
  const { before, isRead } = useStarts(sessionId, turnId);
  const at = isAll ? 0 : before;
  const read = useFetched<Plan>(
    at === null ? null : `rewind ${sessionId} ${at}`,
    (signal) =>
      client.http.rewindFiles({ params: { id: sessionId }, body: { at: at ?? 0, dryRun: true }, signal }),
    changesFiles,
  );
  const { data: plan, problem, refresh } = read;
  const count = plan?.files.length ?? 0;
  return (
    <ConfirmDialog
      title="Take back changes of files?"
      action={`Take back ${countOf(count, 'change')}`}
      permission="files:write"
      isOff={count === 0}
      onConfirm={async () => {
        if (at !== null)
          await client.http.rewindFiles({ params: { id: sessionId }, body: { at, dryRun: false } });
      }}
      onClose={onClose}
    >
      <p>Files change. The messages of the conversation stay, and so does every version.</p>
      <Field label="Changes">
        {(props) => (
          <select
            {...props}
            value={isAll ? 'all' : ''}
            onChange={({ target }) => setAll(target.value === 'all')}
          >
            <option value="">of turn {turnId.slice(0, 8)} and of later ones</option>
            <option value="all">of the whole conversation</option>
          </select>
        )}
      </Field>
      {!isAll && isRead && before === null && (
        <p className={ui.muted}>The beginning of this turn is not in the log any more.</p>
      )}
      {problem && <ProblemBox problem={problem} retry={refresh} />}
      {at !== null && !plan && !problem && <Loading what="the changes" />}
      {plan && (
        <div className={css.rewind}>
          <PlanView {...plan} />
        </div>
      )}
    </ConfirmDialog>
  );
};
