import { useAct } from '../../data/act.js';
import { formOf } from '../../data/file-content.js';
import { nameOf, type FileEntry } from '../../data/file-tree.js';
import { useIdentity } from '../../data/identity.js';
import { setParams, useParam } from '../../data/router.js';
import { ActButton } from '../../ui/act-button.js';
import { CopyRecord, quoteWord } from '../../ui/copy-record.js';
import { downloadBytes } from '../../ui/download.js';
import { formatBytes } from '../../ui/format.js';
import { Button, css as ui, ProblemBox, Time } from '../../ui/ui.js';
import { ChangeButtons } from './dialogs.js';
import type { Shown } from './shown-version.js';
import { readBytes } from './use-content.js';
import { Actor, type FileChange } from './versions.js';
import css from './files.module.css';

const Steps = ({ changes, current }: { changes: readonly FileChange[]; current: number | undefined }) => {
  const stored = changes.filter(({ digest }) => digest !== null);
  const index = stored.findIndex(({ version }) => version === current);
  const show = (change: FileChange | undefined): void => setParams({ v: change?.version, from: null });
  return (
    <span className={css.steps}>
      <Button
        icon="previous"
        look="quiet"
        aria-label="Version before"
        disabled={index < 0 || index + 1 >= stored.length}
        onClick={() => show(stored[index + 1])}
      />
      {current !== undefined && <span>v{current}</span>}
      <Button
        icon="next"
        look="quiet"
        aria-label="Version after"
        disabled={index <= 0}
        onClick={() => show(stored[index - 1])}
      />
    </span>
  );
};

interface ActionsProps {
  readonly entry: FileEntry;
  readonly shown: Shown;
  readonly text: string | null;
  readonly edit: () => void;
}

/** Actions on a file. */
export const FileActions = ({ entry, shown, text, edit }: ActionsProps) => {
  const { workspace } = useIdentity();
  const isSource = useParam('source') !== '';
  const { run, isBusy, problem } = useAct();
  const { path, is_virtual: isVirtual } = entry;
  const save = (): void =>
    run(async () => downloadBytes(await readBytes(workspace, shown.place), nameOf(path)));
  const version = shown.place.at === undefined ? '' : ` --at ${shown.place.at}`;
  return (
    <div className={css.actions}>
      {text !== null && !isVirtual && shown.isNewest && (
        <ActButton permission="files:write" icon="tool" onClick={edit}>
          Edit
        </ActButton>
      )}
      {text !== null && formOf(path) !== 'code' && (
        <Button
          aria-pressed={isSource}
          onClick={() => setParams({ source: isSource ? null : '1', line: null })}
        >
          Source
        </Button>
      )}
      <Button icon="save" disabled={isBusy} onClick={save}>
        Download
      </Button>
      {!isVirtual && <ChangeButtons entry={entry} />}
      <CopyRecord
        noun="file"
        json={{ value: entry }}
        isOfPosition={false}
        command={`antiphon files cat ${quoteWord(path)}${version}`}
      />
      {problem && <ProblemBox problem={problem} />}
    </div>
  );
};

/** The first characters of a digest, with the whole one in a tip. */
const Digest = ({ text }: { readonly text: string }) => (
  <code className={ui.mono} data-tip={text}>
    {text.slice(0, 12)}
  </code>
);

/** Version, size, digest and origin of a file. */
export const FileFacts = ({
  entry,
  shown,
  changes,
}: {
  entry: FileEntry;
  shown: Shown;
  changes: readonly FileChange[];
}) => {
  const { change } = shown;
  return (
    <p className={css.facts}>
      {!entry.is_virtual && <Steps changes={changes} current={change?.version} />}
      <span>{formatBytes(shown.size)}</span>
      {shown.digest !== null && (
        <span>
          SHA-256 <Digest text={shown.digest} />
        </span>
      )}
      {change && (
        <span>
          <Actor cause={change.cause} />, <Time at={change.at} />
        </span>
      )}
      {entry.is_virtual && <span>a chat, built when it is read</span>}
    </p>
  );
};
